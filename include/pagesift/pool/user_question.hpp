// Which pools' users the calling thread is asking for memory.
#pragma once

#include <pagesift/core/one_per_process.hpp>

namespace pagesift {

/// Lives while the user of a pool is asked for memory (`pool_options::on_shortage`). The user may
/// request some of the same pool meanwhile, which then must not ask again: that had no end.
class PAGESIFT_ONE_PER_PROCESS user_question {
 public:
  /// \param pool whose user is asked by the calling thread; compared, not used
  explicit user_question(const void* pool) noexcept : pool_{pool}, outer_{innermost()} {
    innermost() = this;
  }
  ~user_question() { innermost() = outer_; }
  user_question(const user_question&) = delete;
  user_question& operator=(const user_question&) = delete;

  /// Whether the calling thread is asking the user of that pool.
  [[nodiscard]] static bool is_put_to_user_of(const void* pool) noexcept {
    const user_question* q = innermost();
    while (q != nullptr && q->pool_ != pool) {
      q = q->outer_;
    }
    return q != nullptr;
  }

 private:
  [[nodiscard]] static const user_question*& innermost() noexcept {
    static thread_local const user_question* now = nullptr;
    return now;
  }

  const void* pool_;
  const user_question* outer_;
};

}  // namespace pagesift
