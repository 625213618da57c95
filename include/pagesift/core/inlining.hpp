// Says to the compiler which calls belong to the path of a hit and which only rarely happen. What
// it decides by itself costs a hit about a third more instructions.
#pragma once

#if defined(__GNUC__)
#define PAGESIFT_ALWAYS_INLINE [[gnu::always_inline]] inline
#define PAGESIFT_RARELY_CALLED [[gnu::noinline, gnu::cold]]
#else
#define PAGESIFT_ALWAYS_INLINE inline
#define PAGESIFT_RARELY_CALLED
#endif
