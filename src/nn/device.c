/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the device that networks run on: its name, what AUTO means here, and what there is to say about it.
 * What a card needs is known to its row of the table (backends.c); a library without such a row knows no card. */
#include "base/status.h"
#include "nn/backends.h"
#include "nn/cpu.h"

#include <stdio.h>
#include <string.h>

enum { INDEX_MAX = 63 }; /* more cards than a machine has; two digits */

/* AUTO leaves a card alone that others have filled: weights and one batch of a usual network need about so much. */
#define AUTO_FREE (1ULL << 30)

static fkt_status unknown(const char *s)
{
    return fkt_fail_hint(FKT_E_ARG, "a device is cpu, cuda, cuda:N with N from 0, or auto", "unknown device '%s'", s);
}

/* One or two digits without a leading zero. */
static int index_of(const char *s)
{
    const size_t n = strspn(s, "0123456789");
    int index = 0;
    if (n < 1 || n > 2 || s[n] || (n > 1 && s[0] == '0')) return -1;
    for (size_t i = 0; i < n; i++) index = 10 * index + (s[i] - '0');
    return index <= INDEX_MAX ? index : -1;
}

fkt_status fkt_device_parse(struct fkt_device *out, const char *s)
{
    struct fkt_device d = {FKT_DEVICE_CPU, 0};
    if (!strcmp(s, "auto")) d.kind = FKT_DEVICE_AUTO;
    else if (!strncmp(s, "cuda", 4) && (!s[4] || s[4] == ':')) {
        d.kind = FKT_DEVICE_CUDA;
        if (s[4]) d.index = index_of(s + 5);
        if (d.index < 0) return unknown(s);
    } else if (strcmp(s, "cpu") != 0) return unknown(s);
    *out = d;
    return FKT_OK;
}

void fkt_device_name(struct fkt_device d, char out[FKT_DEVICE_NAME])
{
    if (d.kind == FKT_DEVICE_CUDA) snprintf(out, FKT_DEVICE_NAME, "cuda:%d", d.index);
    else snprintf(out, FKT_DEVICE_NAME, "%s", d.kind == FKT_DEVICE_AUTO ? "auto" : "cpu");
}

/* NULL: this library was built without CUDA. */
static const struct fkt_backend_row *card_row(void)
{
    const struct fkt_backend_row *r;
    for (size_t i = 0; (r = fkt_backend_row(i)); i++)
        if (r->kind == FKT_DEVICE_CUDA) return r;
    return NULL;
}

static fkt_status check_card(int index)
{
    const struct fkt_backend_row *r = card_row();
    char text[512], hint[256];
    fkt_status st;
    if (index < 0) return fkt_fail(FKT_E_ARG, "cards are numbered from 0: %d is not one", index);
    if (!r) {
        st = fkt_fail(FKT_E_STATE, "device 'cuda:%d' cannot be used: this build has no CUDA", index);
        return fkt_hint_code(st, FKT_HINT_DEVICE_BUILD, "use a library that was built with CUDA, or the processor");
    }
    st = r->check(index);
    if (st == FKT_OK) return st;
    snprintf(hint, sizeof hint, "%s", fkt_error_hint());
    snprintf(text, sizeof text, "%s", fkt_error_text());
    st = fkt_fail(st == FKT_E_NOMEM ? st : FKT_E_STATE, "device 'cuda:%d' cannot be used: %s", index, text);
    return fkt_hint_code(st, FKT_HINT_DEVICE_CPU, hint[0] ? hint : "use the processor instead");
}

static fkt_status check_auto(void)
{
    struct fkt_device_facts f = {.memory = 0};
    fkt_status st;
    FKT_TRY(check_card(0));
    FKT_TRY(card_row()->describe(0, &f));
    if (f.memory_free < AUTO_FREE)
        st =
            fkt_fail(FKT_E_NOMEM, "card 0 ('%s') has only %.1f GB of free memory", f.name, (double)f.memory_free / 1e9);
out:
    return st;
}

fkt_status fkt_device_resolve(struct fkt_device *d, char *why, size_t cap)
{
    fkt_status st = FKT_OK;
    if (why && cap) why[0] = '\0';
    switch (d->kind) {
    case FKT_DEVICE_CPU: d->index = 0; return FKT_OK;
    case FKT_DEVICE_CUDA: return check_card(d->index);
    case FKT_DEVICE_AUTO:
        st = check_auto();
        if (st != FKT_OK && why && cap) snprintf(why, cap, "%s", fkt_error_text());
        *d = (struct fkt_device){st == FKT_OK ? FKT_DEVICE_CUDA : FKT_DEVICE_CPU, 0};
        return FKT_OK;
    }
    return fkt_fail(FKT_E_ARG, "%d is not a kind of device", (int)d->kind);
}

static fkt_status describe_processor(struct fkt_device_facts *out)
{
    const char *isa = NULL;
    fkt_status st;
    fkt_cpu_processor(out->name, sizeof out->name);
    FKT_TRY(fkt_cpu_isa(&isa));
    snprintf(out->capability, sizeof out->capability, "%s", isa);
    snprintf(out->libraries, sizeof out->libraries, "%s", fkt_cpu_library());
out:
    return st;
}

fkt_status fkt_device_describe(struct fkt_device d, struct fkt_device_facts *out)
{
    fkt_status st;
    *out = (struct fkt_device_facts){.memory = 0};
    if (d.kind == FKT_DEVICE_AUTO)
        return fkt_fail(FKT_E_ARG, "'auto' is not a device: only what it stands for can be described");
    FKT_TRY(fkt_device_resolve(&d, NULL, 0));
    st = d.kind == FKT_DEVICE_CPU ? describe_processor(out) : card_row()->describe(d.index, out);
out:
    return st;
}

int fkt_device_cards(void)
{
    const struct fkt_backend_row *r = card_row();
    return r ? r->cards() : 0;
}

void fkt_cpu_processor(char *out, size_t cap)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[512];
    snprintf(out, cap, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(out, cap, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (f) fclose(f);
}
