/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reason - why a replica is not what it should be, and what helps: the one table
 * that repl_stat(), the status socket, replctl and docs/RELIABILITY.md tell from.
 *
 * Pure. The codes are enum repl_reason of librepl.h.
 */
#ifndef COMMON_REASON_H
#define COMMON_REASON_H

#include <stddef.h>

#include "err.h"
#include "replica_judge.h"

/*
 * X(code, name, what it means, next safe command). In the last FILE stands for the
 * local pool file, SIZE for its bytes, TARGET for the target and TARGET/POOL for the replica.
 */
#define REASON_TABLE(X)                                                                            \
	X(NONE, "none", "the replica has everything that was acknowledged",                        \
	  "nothing needs to be done")                                                              \
	X(CONNECTING, "connecting", "the target is being reached",                                 \
	  "replctl wait FILE --for up-to-date --timeout 60")                                       \
	X(UNREACHABLE, "unreachable",                                                              \
	  "the target's machine, or the SSH server on it, is not "                                 \
	  "there; it is tried again by itself",                                                    \
	  "check the host's name, and that sshd or repld serve runs there; then replctl list "     \
	  "TARGET")                                                                                \
	X(LOGIN_REFUSED, "login-refused", "the target refused the login",                          \
	  "do what the message says: mostly this user's public key is to be added to the "         \
	  "target's authorized_keys; then replctl list TARGET")                                    \
	X(HOST_KEY, "host-key",                                                                    \
	  "the target's host key is unknown, revoked, or another one than it was",                 \
	  "compare the fingerprint with the target's own before it is put into known_hosts, or "   \
	  "give a host whose key is revoked another one; then replctl list TARGET")                \
	X(TIMED_OUT, "timed-out",                                                                  \
	  "the target did not answer by the deadline; it is tried again by itself",                \
	  "replctl list TARGET; if that works and is slow, raise connect-timeout, or op-timeout "  \
	  "where an answer is waited for; if not, look "                                           \
	  "at the network between")                                                                \
	X(DATA_PORT, "data-port",                                                                  \
	  "SSH to the target works, and its data port is not reached; it is tried again by "       \
	  "itself",                                                                                \
	  "let the address and port that the message names through the firewalls, or set "         \
	  "data-address, data-told or data-ports in the target's repld.conf; then replctl bench "  \
	  "--quick TARGET")                                                                        \
	X(CONNECTION_LOST, "connection-lost", "the connection ended; it is made again by itself",  \
	  "replctl status TARGET; look at the target's log if it stays so")                        \
	X(NOT_ANSWERING, "not-answering",                                                          \
	  "the target stopped answering on an open connection; "                                   \
	  "it is tried again by itself",                                                           \
	  "replctl status TARGET; look at the network and at the load of the target")              \
	X(PROTOCOL, "protocol", "the target said what makes no sense here",                        \
	  "look at the target's log; replctl probe TARGET/POOL")                                   \
	X(VERSION, "version",                                                                      \
	  "librepl and repld, or one of them and what it finds on media, are of versions that do " \
	  "not go together",                                                                       \
	  "install the newer version where the older one is: the message says what is newer")      \
	X(TARGET_IO, "target-io", "reading or writing the replica's media failed",                 \
	  "look at the target's kernel log, then replctl info TARGET/POOL")                        \
	X(TARGET_FULL, "target-full", "there is no space left on the target",                      \
	  "make room in the target's pool directory; replctl list TARGET")                         \
	X(TARGET_LIMIT, "target-limit", "a limit on the target is too low",                        \
	  "raise the limit that the message names, in the target's repld.conf or limits.conf; "    \
	  "or, where it names what to ask for instead, do that")                                   \
	X(POOL_MISSING, "pool-missing", "the target has no such pool",                             \
	  "replctl list TARGET; to fill a new one where the program runs: replctl create "         \
	  "TARGET/POOL --size SIZE; replctl resume FILE TARGET/POOL; else: replctl sync FILE "     \
	  "TARGET/POOL; of a pool set of librpmem's: pmempool sync of its set file")               \
	X(OTHER_WRITER, "other-writer",                                                            \
	  "another session writes to the replica: another program's, or the last one of this "     \
	  "program, which the target has not ended yet; it is tried again by itself",              \
	  "if it stays so for more than 30 s: replctl status TARGET; end the writer that is "      \
	  "not this program")                                                                      \
	X(BEING_READ, "being-read",                                                                \
	  "another session reads the replica, such as a restore or a verify, and keeps writers "   \
	  "out meanwhile; it is tried again by itself",                                            \
	  "replctl status TARGET; when what reads it has ended: replctl wait FILE --for "          \
	  "up-to-date --timeout 600")                                                              \
	X(PROMOTED, "promoted", "the pool there was promoted and is a primary, no replica",        \
	  "replctl info TARGET/POOL; if it is to be a replica again: replctl demote TARGET/POOL; " \
	  "then, where a program replicates to it: replctl resume FILE TARGET/POOL")               \
	X(BEHIND, "behind", "the local data are older than the replica's",                         \
	  "when the program that has FILE open has ended, to take the replica's data: replctl "    \
	  "restore --force TARGET/POOL FILE")                                                      \
	X(DIVERGED, "diverged", "both sides went on from a common past: one of them must lose",    \
	  "replctl verify FILE TARGET/POOL; when the program that has FILE open has ended: "       \
	  "replctl resolve --dry-run --discard replica FILE TARGET/POOL")                          \
	X(UNRELATED, "unrelated", "the pool there has nothing in common with the local data",      \
	  "replctl info TARGET/POOL; choose another name, or, when the program that has FILE "     \
	  "open has ended: replctl sync --dry-run FILE TARGET/POOL")                               \
	X(SIZE, "size", "the pool there has another size than the local data",                     \
	  "replctl info TARGET/POOL; a smaller one grows by replctl grow TARGET/POOL --size "      \
	  "SIZE; if it lies in files of a set, the local file has to be made a multiple of 4096 "  \
	  "bytes long; to a larger one the local file has to grow, or, where nothing in it "       \
	  "counts: "                                                                               \
	  "replctl remove TARGET/POOL; replctl resume FILE TARGET/POOL; of a pool set of "         \
	  "librpmem's: replctl remove TARGET/POOL; pmempool sync of its set file")                 \
	X(DAMAGED, "damaged", "the replica's metadata or its files can't be believed",             \
	  "put back what the message names; or, if that is lost, copy the pool's file away "       \
	  "unless a good copy is known, then replctl remove TARGET/POOL; to make it anew: "        \
	  "replctl resume FILE TARGET/POOL where the program runs, else replctl sync FILE "        \
	  "TARGET/POOL; of a pool set of librpmem's: pmempool sync of its set file")               \
	X(REFUSED, "refused", "the target refused, for safety",                                    \
	  "replctl info TARGET/POOL; do what the message says, then replctl resume FILE "          \
	  "TARGET/POOL")                                                                           \
	X(PAUSED, "paused", "an administrator has paused it", "replctl resume FILE TARGET/POOL")   \
	X(LAG, "lag", "it fell behind by more than the bound of the configuration",                \
	  "replctl status FILE; a faster link, a greater async-lag-bytes, or on-lag = slow")       \
	X(RESYNCING, "resyncing", "what it has missed is being copied",                            \
	  "replctl wait FILE --for up-to-date --timeout 600")                                      \
	X(INCONSISTENT, "inconsistent",                                                            \
	  "a copy into it was begun and has not ended, or another hand has cut or replaced its "   \
	  "file: it is no image of any moment",                                                    \
	  "replctl sync FILE TARGET/POOL; or open the program that replicates to it")              \
	X(OUTDATED, "outdated", "it misses updates that were acknowledged without it",             \
	  "replctl sync FILE TARGET/POOL; or open the program that replicates to it")              \
	X(WRITER_GONE, "writer-gone",                                                              \
	  "its writer ended without closing it: it holds all that it has acknowledged, which is "  \
	  "all where drains waited for it, and perhaps more; another copy may have gone on "       \
	  "without it",                                                                            \
	  "if the program still runs: replctl why FILE; if its machine has lost its power, or "    \
	  "FILE is lost: replctl newest TARGET/POOL and the other replicas tells which to "        \
	  "restore; else start it again")                                                          \
	X(CONFIG, "config", "the configuration is wrong, here or on the target",                   \
	  "correct what the message names; replctl list TARGET; then, where a program "            \
	  "replicates to it: replctl resume FILE TARGET/POOL")                                     \
	X(LOCAL, "local", "memory, a descriptor or a file on this machine is wanting",             \
	  "do what the message says, then replctl status FILE")                                    \
	X(FAILED, "failed", "something else failed; the message says what",                        \
	  "do what the message says, then replctl status FILE")

/* When something failed. */
enum reason_phase {
	REASON_CONNECT, /* reaching and logging in */
	REASON_OPEN,    /* opening the pool, judging, lanes */
	REASON_USE,     /* updates and heartbeats of an open one */
	REASON_RESYNC,
};

/* The reason that an error has, else by what it says. Of an error never REPL_REASON_NONE. */
enum repl_reason reason_of_error(const struct err *e, enum reason_phase phase);

/* Why the judge refuses; REPL_REASON_NONE for what it does not refuse. */
enum repl_reason reason_of_judge(enum judge_reason reason);

/* What a sidecar tells alone, of a pool that nobody writes to. */
enum repl_reason reason_of_sidecar(const struct sidecar *s);

/* Of an unknown code as of REPL_REASON_FAILED; never NULL. */
const char *reason_name(int reason);
const char *reason_meaning(int reason);
const char *reason_next(int reason); /* with its placeholders */

/* REPL_REASON_FAILED for an unknown name. */
enum repl_reason reason_by_name(const char *name);

#define REASON_NAME_MAX 32

/* Of what a peer gives as its reason; REPL_REASON_NONE unless it is one of what it can know. */
enum repl_reason reason_by_peer(const char *name);

/* The three axes of a replica's state: enum repl_connection, repl_replication, repl_data. */
enum reason_axis { REASON_CONNECTION, REASON_REPLICATION, REASON_DATA, REASON_AXIS_COUNT };

const char *reason_axis_key(enum reason_axis axis);             /* "connection" */
const char *reason_axis_name(enum reason_axis axis, int value); /* "connected"; NULL: no value */
int reason_axis_value(enum reason_axis axis, const char *name); /* -1: no name */

/* What the placeholders of a next step become; NULL or "" leaves one as it is. */
struct reason_names {
	const char *file, *size, *target, *replica;
};

/* reason_next() with the names in place as words of a shell, cut off at size. */
void reason_next_for(int reason, const struct reason_names *names, char *out, size_t size);

#endif
