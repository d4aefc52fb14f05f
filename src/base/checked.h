/* SPDX-License-Identifier: Apache-2.0 */
/* checked.h - integer arithmetic with overflow checks. Each returns 1 when the result fits, 0 when not. */
#ifndef FKT_BASE_CHECKED_H
#define FKT_BASE_CHECKED_H

#include <stddef.h>
#include <stdint.h>

static inline int fkt_mul_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline int fkt_add_u64(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline int fkt_add_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline int fkt_add_size(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline int fkt_mul_size(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }

#endif
