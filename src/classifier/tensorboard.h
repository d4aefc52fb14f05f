/* SPDX-License-Identifier: Apache-2.0 */
/* tensorboard.h - the checksum of event files, for tests. */
#ifndef FKT_CLASSIFIER_TENSORBOARD_H
#define FKT_CLASSIFIER_TENSORBOARD_H

#include <stddef.h>
#include <stdint.h>

uint32_t fkt_crc32c(const uint8_t *bytes, size_t n); /* Castagnoli; "123456789" gives 0xE3069283 */

#endif
