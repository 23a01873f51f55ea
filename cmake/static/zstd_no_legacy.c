// SPDX-License-Identifier: Apache-2.0
/* Debian's libzstd also reads what its versions 0.5 to 0.7 wrote, with a decoder for each. Layers are of the format that has been
 * fixed since (RFC 8878), and come from strangers: those decoders stay out, and such a frame is an error. */
#include <stddef.h>
#include <zstd.h>
#include <zstd_errors.h>

static size_t unsupported(void) { return (size_t)-ZSTD_error_version_unsupported; }

#define WITHOUT(version)                                                                                                     \
  void *ZSTDv##version##_createDCtx(void);                                                                                   \
  void *ZSTDv##version##_createDCtx(void) { return NULL; }                                                                   \
  size_t ZSTDv##version##_freeDCtx(void *context);                                                                           \
  size_t ZSTDv##version##_freeDCtx(void *context) { return 0; }                                                              \
  size_t ZSTDv##version##_decompress_usingDict(void *context, void *to, size_t room, const void *from, size_t size,          \
                                               const void *dictionary, size_t dictionary_size);                              \
  size_t ZSTDv##version##_decompress_usingDict(void *context, void *to, size_t room, const void *from, size_t size,          \
                                               const void *dictionary, size_t dictionary_size) {                             \
    return unsupported();                                                                                                    \
  }                                                                                                                          \
  void ZSTDv##version##_findFrameSizeInfoLegacy(const void *from, size_t size, size_t *frame, unsigned long long *content);  \
  void ZSTDv##version##_findFrameSizeInfoLegacy(const void *from, size_t size, size_t *frame, unsigned long long *content) { \
    *frame = unsupported();                                                                                                  \
    *content = ZSTD_CONTENTSIZE_ERROR;                                                                                       \
  }                                                                                                                          \
  size_t ZSTDv##version##_getFrameParams(void *facts, const void *from, size_t size);                                        \
  size_t ZSTDv##version##_getFrameParams(void *facts, const void *from, size_t size) { return unsupported(); }               \
  void *ZBUFFv##version##_createDCtx(void);                                                                                  \
  void *ZBUFFv##version##_createDCtx(void) { return NULL; }                                                                  \
  size_t ZBUFFv##version##_freeDCtx(void *context);                                                                          \
  size_t ZBUFFv##version##_freeDCtx(void *context) { return 0; }                                                             \
  size_t ZBUFFv##version##_decompressInitDictionary(void *context, const void *dictionary, size_t size);                     \
  size_t ZBUFFv##version##_decompressInitDictionary(void *context, const void *dictionary, size_t size) {                    \
    return unsupported();                                                                                                    \
  }                                                                                                                          \
  size_t ZBUFFv##version##_decompressContinue(void *context, void *to, size_t *room, const void *from, size_t *size);        \
  size_t ZBUFFv##version##_decompressContinue(void *context, void *to, size_t *room, const void *from, size_t *size) {       \
    return unsupported();                                                                                                    \
  }

WITHOUT(05)
WITHOUT(06)
WITHOUT(07)
