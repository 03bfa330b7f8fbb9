/* libmbsim: memory and step time of LLM training with Megatron Bridge, without a GPU. */
#ifndef MBSIM_H
#define MBSIM_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MBSIM_API __attribute__((visibility("default")))
#else
#define MBSIM_API
#endif

/* "major.minor.patch" of the library that runs, which may be newer than this header. */
MBSIM_API const char *mbsim_version(void);

#ifdef __cplusplus
}
#endif

#endif
