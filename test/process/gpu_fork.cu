// Forks after the device was used.
#include "child.hpp"
#include "gpu_start.hpp"

#include <pagesift/pagesift.hpp>

#include <memory>

int main() {
  skip_without_device();
  pagesift::device_pool& shared = pagesift::device_pool::default_pool();
  auto own = std::make_unique<pagesift::device_pool>();
  pagesift::device_vector<int> numbers(1000, 1);
  void* const p = own->allocate(5000, nullptr);
  const int code = code_of_child([&] {
    int told = 0;
    for (pagesift::device_pool* pool : {&shared, own.get()}) {
      try {
        (void)pool->allocate(5000, nullptr);
      } catch (const pagesift::fork_error&) {
        ++told;
      }
    }
    try {
      (void)pagesift::device_pool::default_pool();
    } catch (const pagesift::fork_error&) {
      ++told;
    }
    own->deallocate(p, 5000, nullptr);
    own.reset();
    { const pagesift::device_vector<int> gone = std::move(numbers); }
    return told == 3 ? 0 : 1;
  });
  own->deallocate(p, 5000, nullptr);
  return code;
}
