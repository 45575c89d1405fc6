/* SPDX-License-Identifier: BSD-3-Clause */
#include "filestamp.h"

static bool
time_equal(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool
filestamp_changed(const char *path, struct filestamp *stamp)
{
	struct filestamp before = *stamp;
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	*stamp = (struct filestamp){.dev = st.st_dev,
				    .ino = st.st_ino,
				    .size = st.st_size,
				    .modified = st.st_mtim,
				    .changed = st.st_ctim};
	return stamp->dev != before.dev || stamp->ino != before.ino || stamp->size != before.size ||
	       !time_equal(&stamp->modified, &before.modified) ||
	       !time_equal(&stamp->changed, &before.changed);
}
