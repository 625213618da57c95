// Keeps a library in the process whose code or data something that is never destroyed refers to.
#pragma once

#include <dlfcn.h>

namespace pagesift {

/// Lets dlclose leave the library that `address` lies in where it is, for the rest of the process.
/// Does nothing for the program itself. With g++ that holds already for most libraries that use
/// pagesift: their symbols of kind STB_GNU_UNIQUE do the same.
inline void stay_loaded(const void* address) noexcept {
  Dl_info own{};
  if (dladdr(address, &own) != 0) {
    (void)dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

}  // namespace pagesift
