/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cifar.c - reading CIFAR binaries.
 * The first byte chooses the layout: even CIFAR-10, odd CIFAR-100; the rest is the file. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) return 0;
    fuzz_dataset(fuzz_file(data[0] & 1 ? "train.bin" : "data_batch_1.bin", data + 1, size - 1));
    return 0;
}
