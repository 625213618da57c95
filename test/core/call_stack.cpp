#include <pagesift/core/call_stack.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

namespace {

pagesift::call_stack at_depth(int depth) {
  const auto stack = depth == 0 ? pagesift::call_stack::here() : at_depth(depth - 1);
  CHECK(depth >= 0);  // work after the call, so that it is one
  return stack;
}

}  // namespace

TEST_CASE("a call stack that was not taken is empty and has no text") {
  const pagesift::call_stack none;
  CHECK(none.empty());
  CHECK(none.to_text().empty());
}

TEST_CASE("a call stack has a line for each frame, and no more frames than are kept") {
  const auto stack = at_depth(100);
#ifdef PAGESIFT_HAS_CALL_STACKS
  CHECK(stack.size() == pagesift::call_stack::most_frames);
#endif
  const std::string text = stack.to_text();
  std::size_t lines = 0;
  for (const char c : text) {
    lines += c == '\n' ? 1 : 0;
  }
  CHECK(lines == stack.size());
  CHECK(stack.empty() == text.empty());
}
