/* SPDX-License-Identifier: Apache-2.0 */
/* request_check_server.c - the HTTPS server around a mailbox in memory, for test_request_check.py and
 * test_rate_limit.py.
 *
 *   request_check_server STATE SITES [connections=N] [idle=S] [request=S] [refusals=N] [rate=N] [wait=S] [listen=ADDR]
 *               [address=URL] [token=T] [message=BYTES]
 *
 * Site i's key is made from the seed SHA-256("site i"); the task's hash is SHA-256("task"). Says its address, ends when
 * its standard input does. Exit 1 with the sentence when the mailbox could not go on. */
#include "crypto/hash.h"
#include "crypto/sign.h"
#include "net/httpd.h"
#include "tests/support/memory_mailbox.h"

#include "base/alloc.h"
#include "base/text.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int idle(void *self)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    char byte;
    (void)self;
    return poll(&in, 1, 0) == 1 && read(0, &byte, 1) <= 0;
}

static void roster_of(uint8_t *roster, uint32_t sites)
{
    for (uint32_t i = 0; i < sites; i++) {
        char name[32];
        uint8_t seed[32], sk[64];
        struct fkt_hash h;
        snprintf(name, sizeof name, "site %u", i);
        fkt_hash_init(&h);
        fkt_hash_add(&h, name, strlen(name));
        fkt_hash_end(&h, seed);
        fkt_sign_keypair(roster + 32 * (size_t)i, sk, seed);
    }
}

static uint32_t message = BOX_MESSAGE;

static void option(struct fkt_httpd_spec *spec, char *word)
{
    struct {
        const char *name;
        uint32_t *at;
    } numbers[] = {{"connections", &spec->limits.connections},
                   {"idle", &spec->limits.idle_seconds},
                   {"request", &spec->limits.request_seconds},
                   {"refusals", &spec->limits.refusals_per_minute},
                   {"rate", &spec->limits.requests_per_second},
                   {"wait", &spec->limits.wait_seconds},
                   {"message", &message}};
    char *value = strchr(word, '=');
    uint64_t x;
    if (!value) return;
    *value++ = '\0';
    if (strcmp(word, "listen") == 0) spec->listen = value;
    if (strcmp(word, "address") == 0) spec->address = value;
    if (strcmp(word, "token") == 0) spec->token = value;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(word, numbers[i].name) == 0 && fkt_parse_u64(&x, value, UINT32_MAX) == FKT_OK)
            *numbers[i].at = (uint32_t)x;
}

int main(int argc, char **argv)
{
    struct fkt_page_facts facts = {.task_name = "a test", .task_sha256 = "", .privacy = "", .noise = "central"};
    struct fkt_httpd_spec spec = {.listen = "127.0.0.1:0",
                                  .address = "https://127.0.0.1:8443",
                                  .facts = &facts,
                                  .task_text = "{\"task\": \"a test\"}\n"};
    struct fkt_tls tls = {0};
    struct fkt_httpd *h = NULL;
    struct memory_mailbox box = {0};
    struct fkt_mailbox mailbox;
    uint8_t task[32], *roster = NULL;
    struct fkt_hash hash;
    uint64_t sites = 0;
    fkt_status st;
    signal(SIGPIPE, SIG_IGN);
    if (argc < 3 || fkt_parse_u64(&sites, argv[2], 65536) != FKT_OK) return 2;
    for (int i = 3; i < argc; i++) option(&spec, argv[i]);
    fkt_hash_init(&hash);
    fkt_hash_add(&hash, "task", 4);
    fkt_hash_end(&hash, task);
    facts.sites = (uint32_t)sites;
    facts.version = fkt_version();
    FKT_TRY(fkt_alloc(&roster, 32 * sites));
    roster_of(roster, (uint32_t)sites);
    FKT_TRY(memory_mailbox_init(&box, &mailbox, (uint32_t)sites, argv[1]));
    mailbox.in_max = message;
    FKT_TRY(fkt_tls_own(&tls, argv[1], "127.0.0.1"));
    spec.tls = &tls;
    spec.box = &mailbox;
    spec.roster = roster;
    spec.task = task;
    FKT_TRY(fkt_httpd_start(&h, &spec));
    printf("%s\n", fkt_httpd_address(h));
    fflush(stdout);
    st = fkt_httpd_run(h, idle, NULL);
out:
    if (st != FKT_OK) fprintf(stderr, "request_check_server: %s\n", fkt_error_text());
    fkt_httpd_free(h);
    printf("live %zu\n", fkt_alloc_live());
    memory_mailbox_release(&box);
    fkt_tls_clear(&tls);
    fkt_free(roster);
    return st == FKT_OK ? 0 : 1;
}
