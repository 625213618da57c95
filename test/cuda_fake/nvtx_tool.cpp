// Makes test_announcer.cpp the tool that NVTX finds in this program. In a file of its own: NVTX's
// headers have a weak definition of the same variable.
#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExtMem.h>)
struct nvtxExtModuleInfo_t;
int attach_memory_tool(nvtxExtModuleInfo_t* module);
int (*InitializeInjectionNvtxExtension_fnptr)(nvtxExtModuleInfo_t*) = attach_memory_tool;
#endif
#endif
