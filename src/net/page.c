/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - the state of a task as one line of JSON (docs/schema/status.json), for the status page.
 *
 * It contains what the operator knows anyway: which sites are present, how far the round is, what was promised. It
 * contains no number of a site's vector and no class that a site holds, since the server has neither. Names of sites
 * and classes and the reasons of failures are untrusted text: they are escaped here, and the page inserts them as text.
 *
 * Cost: 70 bytes or so for each site that has a name.
 */
#include "net/page.h"

#include <string.h>

/* A JSON string. What is not UTF-8 becomes U+FFFD, so that a line is always valid. */
static void string(struct fkt_text *t, const char *s)
{
    fkt_text_add(t, "\"");
    while (s && *s) {
        size_t n = fkt_utf8_length(s);
        if (n == 0) fkt_text_add(t, "\xef\xbf\xbd");
        else if (*s == '"' || *s == '\\') fkt_text_addf(t, "\\%c", *s);
        else if ((unsigned char)*s < 0x20 || *s == 0x7f) fkt_text_addf(t, "\\u%04x", (unsigned)*s);
        else fkt_text_addn(t, s, n);
        s += n ? n : 1;
    }
    fkt_text_add(t, "\"");
}

/* ,"name": */
static void key(struct fkt_text *t, const char *name) { fkt_text_addf(t, ",\"%s\":", name); }

static void number(struct fkt_text *t, const char *name, uint64_t x)
{
    key(t, name);
    fkt_text_addf(t, "%llu", (unsigned long long)x);
}

static void words(struct fkt_text *t, const char *name, const char *s)
{
    key(t, name);
    string(t, s);
}

static void truth(struct fkt_text *t, const char *name, int yes)
{
    key(t, name);
    fkt_text_add(t, yes ? "true" : "false");
}

static void list(struct fkt_text *t, const char *name, const char *const *s, uint32_t n)
{
    key(t, name);
    fkt_text_add(t, "[");
    for (uint32_t i = 0; s && i < n; i++) {
        if (i) fkt_text_add(t, ",");
        string(t, s[i]);
    }
    fkt_text_add(t, "]");
}

/* The first ten bytes of each key, as people compare them by telephone. */
static void fingerprints(struct fkt_text *t, const uint8_t *roster, uint32_t n)
{
    key(t, "fingerprints");
    fkt_text_add(t, "[");
    for (uint32_t i = 0; roster && i < n; i++) {
        const uint8_t *k = roster + (size_t)i * 32;
        fkt_text_addf(t, "%s\"%02x%02x %02x%02x %02x%02x %02x%02x %02x%02x\"", i ? "," : "", k[0], k[1], k[2], k[3],
                      k[4], k[5], k[6], k[7], k[8], k[9]);
    }
    fkt_text_add(t, "]");
}

static void task(struct fkt_text *t, const struct fkt_page_facts *f)
{
    key(t, "task");
    fkt_text_add(t, "{\"name\":");
    string(t, f->task_name);
    words(t, "sha256", f->task_sha256);
    words(t, "privacy", f->privacy);
    words(t, "noise", f->noise);
    truth(t, "insecure", f->insecure);
    truth(t, "sparse", f->sparse);
    list(t, "classes", f->classes, f->n_classes);
    list(t, "names", f->names, f->sites);
    fingerprints(t, f->roster, f->sites);
    fkt_text_add(t, "}");
}

/* One letter per site, in the order of enum fkt_site_status. */
static void slots(struct fkt_text *t, const struct fkt_mailbox_view *v)
{
    static const char message[] = {'-', 'r', 'a', 'h', 'l', 'c'};
    key(t, "site_status");
    fkt_text_add(t, "\"");
    for (uint32_t i = 0; v->slot && i < v->sites; i++)
        fkt_text_addn(t, &message[v->slot[i] < sizeof message ? v->slot[i] : 0], 1);
    fkt_text_add(t, "\"");
}

static void round_of(struct fkt_text *t, const struct fkt_mailbox_view *v)
{
    words(t, "stage", fkt_stage_name(v->stage));
    words(t, "phase", v->phase);
    number(t, "round", v->round);
    number(t, "sites", v->sites);
    number(t, "ready", v->ready);
    number(t, "expected", v->expected);
    number(t, "heard", v->heard);
    number(t, "lost", v->lost);
    number(t, "survivors", v->survivors);
    number(t, "needed", v->needed);
    slots(t, v);
    number(t, "stage_since", v->stage_since);
    number(t, "phase_since", v->phase_since);
    number(t, "phase_until", v->phase_until);
    truth(t, "overdue", v->overdue);
    number(t, "messages", v->messages);
    number(t, "message_bytes", v->message_bytes);
    number(t, "log_entries", v->log_entries);
    words(t, "reason", v->reason);
    words(t, "release_sha256", v->release_sha256);
    truth(t, "comparing", v->comparing);
}

static void refused(struct fkt_text *t, const struct fkt_mailbox_view *v)
{
    key(t, "refused");
    for (uint32_t r = 0; r < v->n_refused; r++)
        fkt_text_addf(t, "%s\"%s\":%llu", r ? "," : "{", fkt_refusal_name((enum fkt_refusal)r),
                      (unsigned long long)v->refused[r]);
    fkt_text_add(t, "}");
}

static void traffic(struct fkt_text *t, const struct fkt_page_counts *c)
{
    key(t, "traffic");
    fkt_text_addf(t, "{\"requests\":%llu", (unsigned long long)c->requests);
    number(t, "answers_2xx", c->answers_2xx);
    number(t, "answers_4xx", c->answers_4xx);
    number(t, "answers_5xx", c->answers_5xx);
    number(t, "bytes_in", c->bytes_in);
    number(t, "bytes_out", c->bytes_out);
    number(t, "connections", c->connections);
    number(t, "parked", c->parked);
    number(t, "streams", c->streams);
    fkt_text_add(t, "}");
}

void fkt_page_status(struct fkt_text *out, const struct fkt_page_facts *f, const struct fkt_mailbox_view *v,
                     const struct fkt_page_counts *c, uint64_t now_ms, int grid)
{
    fkt_text_add(out, "{\"schema\":\"fedkt.status/1\"");
    words(out, "version", f->version);
    number(out, "started", f->started_ms);
    number(out, "now", now_ms);
    task(out, f);
    round_of(out, v);
    truth(out, "grid", grid);
    refused(out, v);
    traffic(out, c);
    fkt_text_add(out, "}");
}
