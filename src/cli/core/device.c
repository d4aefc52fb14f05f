/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the option --device: its words, what is printed about the choice, and its JSON. */
#include "cli/core/device.h"

#include "base/status.h"
#include "cli/core/launch.h"

#include <stdio.h>

int cli_device_parse(const char *s)
{
    struct fkt_device d;
    if (fkt_device_parse(&d, s) != FKT_OK) return -1;
    return d.kind == FKT_DEVICE_AUTO  ? CLI_DEVICE_AUTO
           : d.kind == FKT_DEVICE_CPU ? CLI_DEVICE_CPU
                                      : CLI_DEVICE_CUDA + d.index;
}

struct fkt_device cli_device_of(int choice)
{
    if (choice == CLI_DEVICE_AUTO) return (struct fkt_device){FKT_DEVICE_AUTO, 0};
    if (choice == CLI_DEVICE_CPU) return (struct fkt_device){FKT_DEVICE_CPU, 0};
    return (struct fkt_device){FKT_DEVICE_CUDA, choice - CLI_DEVICE_CUDA};
}

int cli_card_of(unsigned long local_rank, int cards)
{
    return cards > 0 ? (int)(local_rank % (unsigned long)cards) : 0;
}

fkt_status cli_device_settle(int choice, struct fkt_device *out)
{
    fkt_status st;
    *out = cli_device_of(choice);
    FKT_TRY(fkt_device_resolve(out, NULL, 0));
    if (choice == CLI_DEVICE_AUTO && out->kind == FKT_DEVICE_CUDA) {
        out->index = cli_card_of(cli_local_rank(), fkt_device_cards());
        FKT_TRY(fkt_device_resolve(out, NULL, 0));
    }
out:
    return st;
}

/* A machine without a card needs no remark: nobody expects one to be used. */
static void print_unused(void)
{
    struct fkt_device d = {FKT_DEVICE_AUTO, 0};
    char why[512], line[640];
    if (fkt_device_cards() < 1 || fkt_device_resolve(&d, why, sizeof why) != FKT_OK || !why[0]) return;
    snprintf(line, sizeof line, "fedkt: networks run on the processor: %s", why);
    cli_say(line);
}

void cli_print_device(int choice, struct fkt_device used, const char *dtype, int quiet)
{
    static int printed;
    struct fkt_device_facts f;
    char name[FKT_DEVICE_NAME], line[256];
    if (quiet || printed) return;
    printed = 1;
    if (used.kind == FKT_DEVICE_CPU) {
        if (choice == CLI_DEVICE_AUTO) print_unused();
        return;
    }
    if (fkt_device_describe(used, &f) != FKT_OK) return;
    fkt_device_name(used, name);
    snprintf(line, sizeof line, "fedkt: networks run on %s (%s, %s)", f.name, name, dtype);
    cli_say(line);
}

json_t *cli_device_json(struct fkt_device used)
{
    struct fkt_device_facts f;
    if (fkt_device_describe(used, &f) != FKT_OK) f.name[0] = '\0';
    return json_pack("{s:s s:i s:s}", "kind", used.kind == FKT_DEVICE_CUDA ? "cuda" : "cpu", "index", used.index,
                     "name", f.name);
}

json_t *cli_codec_device_json(const struct fkt_codec *c) { return cli_device_json(fkt_codec_device_used(c)); }
