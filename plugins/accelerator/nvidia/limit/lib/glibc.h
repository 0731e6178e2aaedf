/* Binds to the oldest names of what glibc 2.34 moved between its libraries, so
 * that the library also loads in images older than the machine it was built on. */
#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#define ROBUST "GLIBC_2.12"
#elif defined(__aarch64__)
#define BASE "GLIBC_2.17"
#define ROBUST "GLIBC_2.17"
#else
#error "NVIDIA has no driver for this machine"
#endif
#define OLD(name, version) __asm__(".symver " #name "," #name "@" version)
OLD(dlopen, BASE);
OLD(dlvsym, BASE);
OLD(dladdr, BASE);
OLD(pthread_mutexattr_init, BASE);
OLD(pthread_mutexattr_setpshared, BASE);
OLD(pthread_mutexattr_setrobust, ROBUST);
OLD(pthread_mutex_consistent, ROBUST);
