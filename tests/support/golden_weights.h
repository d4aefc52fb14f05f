/* SPDX-License-Identifier: Apache-2.0 */
/* golden_weights.h - weights that look random and are the same everywhere; oracle/random_weights.py states the law and
 * makes the same numbers, so that a network too large to be kept can be tested against PyTorch all the same. */
#ifndef FKT_TEST_GOLDEN_WEIGHTS_H
#define FKT_TEST_GOLDEN_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

enum { GOLDEN_HASH = 65 }; /* SHA-256 in hex, with the NUL */

/* Elements first .. first + count - 1 of the tensor of that name and shape. */
void golden_weights_fill(float *out, const char *name, unsigned rank, const uint64_t *shape, uint64_t first,
                         size_t count);
/* The tensors of `list` (tests/vectors/codec/<name>.<layout>.txt) as a safetensors file, written a piece at a time: no
 * more memory for a large network than for a small one. `hash` (may be NULL) gets the SHA-256 of all values in the
 * order of the list. */
void golden_weights_write(const char *list, const char *path, char hash[GOLDEN_HASH]);
/* The hash that PyTorch's side wrote into the list. */
void golden_weights_stated(const char *list, char hash[GOLDEN_HASH]);

#endif
