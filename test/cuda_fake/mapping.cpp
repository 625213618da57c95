// Virtual memory: reserved pages of the host's that nobody may touch, and files of memory mapped
// over them, so that a use of what is not mapped is a fault here too.
#include "world.hpp"

#include <iterator>
#include <sys/mman.h>
#include <unistd.h>

namespace fake_cuda {

namespace {

constexpr int nowhere = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

bool is_whole(std::size_t value) { return value % the_world().granularity == 0; }

bool is_reserved(std::uintptr_t begin, std::uintptr_t end) {
  const auto& reservations = the_world().reservations;
  const auto next = reservations.upper_bound(begin);
  return next != reservations.begin() && begin < end &&
         end <= std::prev(next)->first + std::prev(next)->second.bytes;
}

bool is_mapped_anywhere(std::uintptr_t begin, std::uintptr_t end) {
  const auto& mappings = the_world().mappings;
  const auto next = mappings.lower_bound(end);
  return next != mappings.begin() && std::prev(next)->second.end > begin;
}

/// Whether the addresses are whole mappings side by side.
bool is_mapped_whole(std::uintptr_t begin, std::uintptr_t end) {
  const auto& mappings = the_world().mappings;
  std::uintptr_t covered = begin;
  for (auto at = mappings.find(begin);
       covered < end && at != mappings.end() && at->first == covered; ++at) {
    covered = at->second.end;
  }
  return begin < end && covered == end;
}

void drop_if_gone(CUmemGenericAllocationHandle h) {
  world& w = the_world();
  const physical& piece = w.pieces[h];
  if (piece.released && piece.mappings == 0) {
    close(piece.file);
    w.used[piece.device] -= piece.bytes;
    w.pieces.erase(h);
  }
}

/// A piece that has a handle, or null.
physical* find_piece(CUmemGenericAllocationHandle h) {
  const auto found = the_world().pieces.find(h);
  if (found == the_world().pieces.end() || found->second.released) {
    the_world().misuse.push_back("a handle was named that was released or never created");
    return nullptr;
  }
  return &found->second;
}

}  // namespace

CUresult reserve(CUdeviceptr* p, std::size_t bytes, std::size_t alignment) {
  if (bytes == 0 || !is_whole(bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  reservation r{bytes, nullptr, bytes + alignment};
  r.mapped = r.mapped_bytes < bytes ? MAP_FAILED
                                    : mmap(nullptr, r.mapped_bytes, PROT_NONE, nowhere, -1, 0);
  if (r.mapped == MAP_FAILED) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const auto from = reinterpret_cast<std::uintptr_t>(r.mapped);
  *p = (from + alignment - 1) / alignment * alignment;
  the_world().reservations[*p] = r;
  return CUDA_SUCCESS;
}

CUresult unreserve(CUdeviceptr p, std::size_t bytes) {
  auto& reservations = the_world().reservations;
  const auto found = reservations.find(p);
  if (found == reservations.end() || found->second.bytes != bytes ||
      is_mapped_anywhere(p, p + bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  munmap(found->second.mapped, found->second.mapped_bytes);
  reservations.erase(found);
  return CUDA_SUCCESS;
}

CUresult create(CUmemGenericAllocationHandle* h, std::size_t bytes, int device) {
  world& w = the_world();
  if (bytes == 0 || !is_whole(bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (bytes > w.bytes_each - w.used[device]) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const int file = memfd_create("pagesift_fake_cuda", MFD_CLOEXEC);
  if (file == -1 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  *h = ++w.last_piece;
  w.pieces[*h] = physical{device, bytes, file, 0, false};
  w.used[device] += bytes;
  return CUDA_SUCCESS;
}

CUresult destroy(CUmemGenericAllocationHandle h) {
  physical* const piece = find_piece(h);
  if (piece == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  piece->released = true;
  drop_if_gone(h);
  return CUDA_SUCCESS;
}

CUresult map(CUdeviceptr p, std::size_t bytes, CUmemGenericAllocationHandle h) {
  physical* const piece = find_piece(h);
  if (piece == nullptr || bytes != piece->bytes || !is_whole(p) || !is_reserved(p, p + bytes) ||
      is_mapped_anywhere(p, p + bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (mmap(pointer(p), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, piece->file, 0) == MAP_FAILED) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  ++piece->mappings;
  the_world().mappings[p] = mapping{p + bytes, h, {}};
  return CUDA_SUCCESS;
}

CUresult unmap(CUdeviceptr p, std::size_t bytes) {
  auto& mappings = the_world().mappings;
  if (!is_mapped_whole(p, p + bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (mmap(pointer(p), bytes, PROT_NONE, nowhere | MAP_FIXED, -1, 0) == MAP_FAILED) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  for (auto at = mappings.find(p); at != mappings.end() && at->first < p + bytes;) {
    const CUmemGenericAllocationHandle h = at->second.piece;
    --the_world().pieces[h].mappings;
    drop_if_gone(h);
    at = mappings.erase(at);
  }
  return CUDA_SUCCESS;
}

CUresult give_access(CUdeviceptr p, std::size_t bytes, int device) {
  auto& mappings = the_world().mappings;
  if (device < 0 || device >= the_world().devices) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  if (!is_mapped_whole(p, p + bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  mprotect(pointer(p), bytes, PROT_READ | PROT_WRITE);
  for (auto at = mappings.find(p); at != mappings.end() && at->first < p + bytes; ++at) {
    at->second.access.insert(device);
  }
  return CUDA_SUCCESS;
}

void unmap_device(int device) {
  world& w = the_world();
  for (auto at = w.mappings.begin(); at != w.mappings.end();) {
    if (w.pieces[at->second.piece].device != device) {
      ++at;
      continue;
    }
    mmap(pointer(at->first), at->second.end - at->first, PROT_NONE, nowhere | MAP_FIXED, -1, 0);
    at = w.mappings.erase(at);
  }
  for (auto at = w.pieces.begin(); at != w.pieces.end();) {
    if (at->second.device != device) {
      ++at;
      continue;
    }
    close(at->second.file);
    at = w.pieces.erase(at);
  }
}

void unmap_the_world() {
  world& w = the_world();
  for (const auto& entry : w.reservations) {
    munmap(entry.second.mapped, entry.second.mapped_bytes);
  }
  for (const auto& entry : w.pieces) {
    close(entry.second.file);
  }
  w.reservations.clear();
  w.pieces.clear();
  w.mappings.clear();
}

}  // namespace fake_cuda
