/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nothing goes by a lane while the program does not write, and firewalls and NAT forget a
 * connection that is idle for some minutes: the next drain would wait for its deadline and lose the
 * replica. So TCP looks after it. libfabric neither does that nor tells its sockets: they are found
 * by their peer, a port of the target's that is this session's alone.
 */
#include "fabric.h"

#include <dirent.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define IDLE_S  60
#define AGAIN_S 15

static bool
is_peer(const struct sockaddr *a, const struct sockaddr *b)
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

static void
keep(int fd)
{
	const int on = 1, idle = IDLE_S, again = AGAIN_S;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &again, sizeof(again));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

static void
keep_all(const struct sockaddr *peer)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *entry;

	while (d && (entry = readdir(d)) != NULL) {
		struct sockaddr_storage seen = {0};
		socklen_t len = sizeof(seen);
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (entry->d_name[0] != '.' &&
		    getpeername(fd, (struct sockaddr *)&seen, &len) == 0 &&
		    is_peer(peer, (const struct sockaddr *)&seen))
			keep(fd);
	}
	if (d)
		(void)closedir(d);
}

void
fab_keepalive(const char *host, uint16_t port)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	struct addrinfo *list = NULL;
	char service[8];

	(void)snprintf(service, sizeof(service), "%u", (unsigned)port);
	if (getaddrinfo(host, service, &hints, &list))
		return;
	keep_all(list->ai_addr);
	freeaddrinfo(list);
}
