/* SPDX-License-Identifier: BSD-3-Clause */
/* A set file of any bytes is refused, or has parts with paths and sizes within their bounds. */
#include <string.h>

#include "fuzz.h"
#include "poolset.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char begin[] = POOLSET_SIGNATURE "\n";
	static char text[8192];
	static struct poolset set;
	uint64_t sum = 0;
	size_t len = size < sizeof(text) - sizeof(begin) ? size : sizeof(text) - sizeof(begin);

	memcpy(text, begin, sizeof(begin) - 1);
	if (len)
		memcpy(text + sizeof(begin) - 1, data, len);
	(void)poolset_parse((const char *)data, size, &set, NULL);
	if (poolset_parse(text, sizeof(begin) - 1 + len, &set, NULL) != 0)
		return 0;
	FUZZ_CHECK(set.count > 0 && set.count <= POOLSET_PARTS_MAX);
	for (unsigned i = 0; i < set.count; i++) {
		FUZZ_CHECK(set.parts[i].size == 0 || set.parts[i].size >= POOLSET_PART_MIN);
		FUZZ_CHECK(set.parts[i].replica < set.replicas && set.parts[i].index <= i);
		FUZZ_CHECK(set.parts[i].path[0]);
		FUZZ_CHECK(strnlen(set.parts[i].path, sizeof(set.parts[i].path)) <=
			   POOLSET_PATH_MAX);
		sum += set.parts[i].size;
	}
	FUZZ_CHECK(sum <= INT64_MAX && set.replicas <= POOLSET_REPLICAS_MAX);
	return 0;
}

size_t
fuzz_seed(unsigned i, uint8_t *buf)
{
	static const char *const texts[] = {
		"PMEMPOOLSET\n16M a/part\n",           "4M a\n4MiB /pools/b\n# end\n",
		"OPTION SINGLEHDR\n2M a\n2097153 b\n", "OPTION NOHDRS\n1T a\nREPLICA host set\n",
		"AUTO /dev/dax0.0\n8M dir/\n",         "4M a\nREPLICA\n4M b\nOPTION NOHDRS\n",
	};

	if (i >= sizeof(texts) / sizeof(texts[0]))
		return 0;
	memcpy(buf, texts[i], strlen(texts[i]));
	return strlen(texts[i]);
}
