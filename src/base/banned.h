/* SPDX-License-Identifier: Apache-2.0 */
/* banned.h - functions that do not compile here; force-included into every source of src/ (see CMakeLists.txt).
 * System headers that declare them are read first, so that only a use of the name fails. */
#ifndef FKT_BASE_BANNED_H
#define FKT_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef strcpy
#undef strcat
#undef strncpy
#undef sprintf
#undef vsprintf
#undef strtok
#undef atoi
#undef atof
#undef atol
#undef rand
#undef srand
#undef gmtime
#undef localtime
#undef gets
#define strcpy(d, s) fkt_banned_strcpy_use_memcpy_or_snprintf
#define strcat(d, s) fkt_banned_strcat_use_fkt_text
#define strncpy(d, s, n) fkt_banned_strncpy_use_snprintf
#define sprintf(...) fkt_banned_sprintf_use_snprintf
#define vsprintf(...) fkt_banned_vsprintf_use_vsnprintf
#define strtok(s, d) fkt_banned_strtok_use_strchr
#define atoi(s) fkt_banned_atoi_use_fkt_parse_u64
#define atof(s) fkt_banned_atof_use_fkt_parse_double
#define atol(s) fkt_banned_atol_use_fkt_parse_u64
#define rand() fkt_banned_rand_use_crypto_entropy_or_base_rng
#define srand(s) fkt_banned_srand_use_crypto_entropy_or_base_rng
#define gmtime(t) fkt_banned_gmtime_use_gmtime_r
#define localtime(t) fkt_banned_localtime_use_localtime_r
#define gets(s) fkt_banned_gets_use_fgets

#endif
