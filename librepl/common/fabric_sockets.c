/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the lanes' sockets are needed for beside libfabric, which does not tell them: each is found
 * by both of its ends when it is connected.
 *
 * Nothing goes by a lane while the program does not write, and firewalls and NAT forget a
 * connection that is idle for some minutes: the next drain would wait for its deadline and lose the
 * replica. So TCP looks after it.
 *
 * And an operation of a megabyte, or what the system has taken of several, is seconds on its way
 * over a slow link without an event. TCP knows whether it moves.
 *
 * And a lane is to send nothing more from one moment on, while another thread is amid sending.
 */
#include "deadfd.h"
#include "fabric_lane.h"

#include <fcntl.h>
#include <linux/tcp.h> /* glibc's struct tcp_info counts no bytes */
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_S  60
#define AGAIN_S 15
#define FDS_MAX (1 << 20) /* what the system allows a process unless it is told otherwise */

static bool
is_end(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->sa_family == AF_INET6 && a6->sin6_port == b6->sin6_port &&
	       memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

typedef int end_of(int fd, struct sockaddr *addr, socklen_t *len);

static bool
end_is(int fd, end_of *end, const struct sockaddr_storage *expected)
{
	struct sockaddr_storage seen = {0};
	socklen_t len = sizeof(seen);

	return end(fd, (struct sockaddr *)&seen, &len) == 0 &&
	       is_end((const struct sockaddr *)expected, (const struct sockaddr *)&seen);
}

static bool
is_socket(int fd, const struct lane_socket *s)
{
	return end_is(fd, getpeername, &s->peer) && end_is(fd, getsockname, &s->own);
}

/* By trying: /proc may not be there, nor a descriptor to look into it. It was opened just now. */
int
lane_socket_find(struct lane_socket *s, struct fid_ep *ep, struct err *e)
{
	size_t own_len = sizeof(s->own), peer_len = sizeof(s->peer);
	struct rlimit limit;
	int ret;

	ret = fi_getname(&ep->fid, &s->own, &own_len);
	if (!ret)
		ret = fi_getpeer(ep, &s->peer, &peer_len);
	if (ret)
		return ofi_err(e, REPL_E_LOST, ret, "the ends of a data lane");
	/* Where it has just been reset it is not found, and there may be numbers for minutes. */
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > FDS_MAX)
		limit.rlim_cur = FDS_MAX;
	for (int fd = 0; fd < (int)limit.rlim_cur; fd++) {
		if (is_socket(fd, s)) {
			s->fd = fd;
			return 0;
		}
	}
	return err_set(e, REPL_E_LOST, "the socket of a data lane is not to be found");
}

void
lane_socket_cut(const struct lane_socket *s)
{
	if (s->fd >= 0 && is_socket(s->fd, s))
		(void)shutdown(s->fd, SHUT_RDWR);
}

void
lane_socket_abandon(const struct lane_socket *s)
{
	if (s->fd >= 0 && is_socket(s->fd, s))
		deadfd_put(s->fd);
}

void
lane_socket_keep(const struct lane_socket *s)
{
	const int on = 1, idle = IDLE_S, again = AGAIN_S;

	(void)setsockopt(s->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(s->fd, IPPROTO_TCP, TCP_KEEPINTVL, &again, sizeof(again));
	(void)setsockopt(s->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

/* Of a system that is too old to count them 0. */
uint64_t
lane_socket_moved(const struct lane_socket *s)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (s->fd < 0 || !is_socket(s->fd, s) ||
	    getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
		return 0;
	return info.tcpi_bytes_acked + info.tcpi_bytes_received;
}
