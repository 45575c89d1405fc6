/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {
	[BOOT_KEPT] = "kept",
	[BOOT_UNTOLD] = "untold",
	[BOOT_CUT] = "cut",
};

void
boot_now(struct gen_id *id)
{
	char text[GEN_TEXT_SIZE] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!read(fd, text, sizeof(text) - 1);
		(void)close(fd);
	}
	if (!gen_id_parse(text, id))
		memset(id, 0, sizeof(*id));
}

void
boot_none(struct gen_id *id)
{
	memset(id, 0xff, sizeof(*id));
}

enum boot_power
boot_power(const struct sidecar *s)
{
	struct gen_id now;

	if (!s->writer_open)
		return BOOT_KEPT;
	boot_now(&now);
	if (gen_id_is_nil(&now) || gen_id_is_nil(&s->boot))
		return BOOT_UNTOLD;
	return gen_id_equal(&now, &s->boot) ? BOOT_KEPT : BOOT_CUT;
}

const char *
boot_power_name(enum boot_power p)
{
	return names[p];
}

enum boot_power
boot_power_by_name(const char *name)
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return (enum boot_power)i;
	return BOOT_UNTOLD;
}
