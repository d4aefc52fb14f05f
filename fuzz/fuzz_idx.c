/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_idx.c - reading MNIST's pair of files.
 *
 *   | n low | n high | n bytes: labels file | the rest: images file |
 */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n;
    if (size < 2) return 0;
    n = (size_t)data[0] | (size_t)data[1] << 8;
    if (n > size - 2) n = size - 2;
    fuzz_file("train-labels-idx1-ubyte", data + 2, n);
    fuzz_file("train-images-idx3-ubyte", data + 2 + n, size - 2 - n);
    fuzz_dataset(fuzz_folder());
    return 0;
}
