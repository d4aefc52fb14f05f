/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_npz.c - reading a MedMNIST-style .npz: a zip of .npy arrays, each with a header that is nearly Python. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_dataset(fuzz_file("set.npz", data, size));
    return 0;
}
