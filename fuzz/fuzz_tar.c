/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tar.c - reading a tar, plain or compressed, of an image folder or of WebDataset records. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_dataset(fuzz_file("set.tar", data, size));
    return 0;
}
