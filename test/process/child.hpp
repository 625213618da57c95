// Forked children: what they do is checked by their exit code.
#pragma once

#include <cstdlib>
#include <exception>
#include <sys/wait.h>
#include <unistd.h>

inline constexpr int failed_by_exception = 111;

/// Forks, lets the child run `act()` and end with the exit code that it returns; -1 if the child
/// did not end by itself within a minute. The child ends as a program does: by `exit`, which
/// destroys static objects.
template <typename Act>
int code_of_child(Act&& act) {
  const pid_t child = fork();
  if (child == 0) {
    (void)alarm(60);
    int code = failed_by_exception;
    try {
      code = act();
    } catch (const std::exception&) {
    }
    std::exit(code);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
    return -1;
  }
  return WEXITSTATUS(status);
}
