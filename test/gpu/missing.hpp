// What a program for a device may lack besides one.
#pragma once

/// Why none of the program's tests can run on this machine, which has a device; null if they can.
/// main.cu has one that says so; a program that needs more than a device defines its own.
[[nodiscard]] const char* missing_for_this_program();
