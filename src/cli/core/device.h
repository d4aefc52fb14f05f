/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - the option --device: where the networks of a verb run, and how the choice is printed. */
#ifndef FKT_CLI_CORE_DEVICE_H
#define FKT_CLI_CORE_DEVICE_H

#include "fedkt/codec.h"
#include "fedkt/machine.h"

#include "cli/core/options.h"

#include <jansson.h>

/* The option's value is an int, 0 for auto, so that options of zeros have the default. */
#define CLI_DEVICE_ROW(to)                                                                                             \
    CLI_OPT_CHOICE("device", &(to), cli_device_parse, "auto, cpu, cuda or 'cuda:N'",                                   \
                   "where networks run: auto is the first NVIDIA card that this build can use, else the processor; "   \
                   "cuda:N is card N, from 0")
enum { CLI_DEVICE_AUTO = 0, CLI_DEVICE_CPU = 1, CLI_DEVICE_CUDA = 2 /* and the index of the card */ };
int cli_device_parse(const char *s); /* -1: not a device */
struct fkt_device cli_device_of(int choice);

/* What the choice means on this machine; never AUTO. Of several processes that a launcher has started on one host, each
 * takes the next card with auto. */
FKT_MUST_USE fkt_status cli_device_settle(int choice, struct fkt_device *out);
int cli_card_of(unsigned long local_rank, int cards);
/* Once in a run, on stderr: the card that networks run on; with auto, a card that is there and cannot be used. Nothing
 * about the processor. */
void cli_print_device(int choice, struct fkt_device used, const char *dtype, int quiet);
/* {"kind", "index", "name"}: name as its maker calls it. NULL: no memory. */
json_t *cli_device_json(struct fkt_device used);
json_t *cli_codec_device_json(const struct fkt_codec *c); /* of the device that it runs on */

#endif
