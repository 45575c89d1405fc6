/* SPDX-License-Identifier: BSD-3-Clause */
/* A profile claims only what this machine's own evidence shows; all else stays unknown and safe. */
#include "unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "probe.h"

#define CASCADE_LAKE                                                                               \
	"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Xeon\n\n"
#define ICE_LAKE "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\n\n"
#define AMD      "vendor_id\t: AuthenticAMD\ncpu family\t: 6\nmodel\t\t: 85\n\n"

/* A made-up machine below base: base/sys, base/proc and a pool. */
struct machine {
	char base[64];
	char sysfs[80];
	char block[80]; /* the pool's dev/block entry */
	int fd;
	struct conf conf;
	struct probe probe;
};

static void __attribute__((format(printf, 3, 4)))
put_file(struct machine *m, const char *text, const char *fmt, ...)
{
	char path[512];
	size_t used = (size_t)snprintf(path, sizeof(path), "%s/", m->base);
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	(void)vsnprintf(path + used, sizeof(path) - used, fmt, ap);
	va_end(ap);
	for (char *p = path + used; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(path, 0700);
		*p = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* base/name -> base/to, the parents of name made if need be. */
static void
put_link(struct machine *m, const char *name, const char *to)
{
	char target[300];
	char path[300];

	put_file(m, "", "%s", name);
	(void)snprintf(target, sizeof(target), "%s/%s", m->base, to);
	(void)snprintf(path, sizeof(path), "%s/%s", m->base, name);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(target, path), 0);
}

static int
setup(void **state)
{
	struct machine *m = calloc(1, sizeof(*m));
	struct stat st;
	char path[80];

	assert_non_null(m);
	(void)strcpy(m->base, "/tmp/repl-probe-XXXXXX");
	assert_non_null(mkdtemp(m->base));
	(void)snprintf(m->sysfs, sizeof(m->sysfs), "%s/sys", m->base);
	put_file(m, "", "sys/class/empty");
	put_file(m, CASCADE_LAKE, "proc/cpuinfo");
	put_file(m, "", "pool");
	(void)snprintf(path, sizeof(path), "%s/pool", m->base);
	m->fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(m->fd, &st), 0);
	(void)snprintf(m->block, sizeof(m->block), "sys/dev/block/%u:%u", major(st.st_dev),
		       minor(st.st_dev));
	*state = m;
	return 0;
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int
teardown(void **state)
{
	struct machine *m = *state;

	(void)close(m->fd);
	(void)nftw(m->base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	free(m);
	return 0;
}

static const struct profile *
run_as(struct machine *m, const char *provider, int granularity)
{
	enum profile_granularity g = (enum profile_granularity)granularity;
	struct err e;

	err_clear(&e);
	assert_int_equal(probe_run(&m->conf, m->fd, granularity < 0 ? NULL : &g, provider, m->sysfs,
				   &m->probe, &e),
			 REPL_OK);
	return &m->probe.profile;
}

static const char *
fact(const struct machine *m, const char *name)
{
	for (unsigned i = 0; i < m->probe.fact_count; i++) {
		if (strcmp(m->probe.facts[i].name, name) == 0)
			return m->probe.facts[i].value;
	}
	return "";
}

static void
assert_known(const struct profile *p, enum profile_field f, int value)
{
	if (!p->known[f] || p->value[f] != value)
		fail_msg("%s: known %d value %d (%s)", profile_field_name(f), p->known[f],
			 p->value[f], p->source[f]);
}

static void
assert_unknown(const struct profile *p, enum profile_field f)
{
	struct profile safe;

	profile_init(&safe);
	if (p->known[f] || p->value[f] != safe.value[f] || !p->source[f][0])
		fail_msg("%s: known %d value %d (%s)", profile_field_name(f), p->known[f],
			 p->value[f], p->source[f]);
}

/* ---- persistence domain ---- */

#define BUS "sys/devices/LNXSYSTM:00/ndbus0"

static void
put_region(struct machine *m, const char *domain)
{
	put_file(m, "cpu_cache\n", BUS "/region0/persistence_domain");
	put_file(m, "", BUS "/region3/namespace3.0/block/pmem3/pmem3p1/uevent");
	if (domain)
		put_file(m, domain, BUS "/region3/persistence_domain");
	put_link(m, m->block, BUS "/region3/namespace3.0/block/pmem3/pmem3p1");
}

/* Of the pool's own device, not of the machine; what nobody knows does not survive. */
static void
caches_survive_by_evidence_or_word(void **state)
{
	static const struct {
		const char *region; /* NULL: there is none */
		bool given, trust;
		int value;
		bool survive;
	} rows[] = {
		{"cpu_cache\n", false, false, 0, true},
		{"memory_controller\n", false, false, 0, false},
		{"something\n", false, false, 0, false},
		{NULL, false, false, 0, false},
		{NULL, true, false, PROFILE_DMP, false},
		{NULL, true, false, PROFILE_MHP, true},
		{NULL, true, false, PROFILE_WSP, true},
		{"cpu_cache\n", true, false, PROFILE_WSP, true},
		{"cpu_cache\n", true, false, PROFILE_DMP, false},
		{"cpu_cache\n", true, true, PROFILE_DMP, false},
		{"memory_controller\n", true, false, PROFILE_MHP, false},
		{"memory_controller\n", true, true, PROFILE_MHP, true},
	};
	struct machine *m = *state;

	assert_false(probe_caches_survive(&m->conf, m->fd, m->sysfs));
	put_region(m, NULL);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		m->conf.stated[PROFILE_F_DOMAIN] = (struct conf_stated){
			.given = rows[i].given, .trust = rows[i].trust, .value = rows[i].value};
		put_file(m, rows[i].region ? rows[i].region : "",
			 BUS "/region3/persistence_domain");
		if (probe_caches_survive(&m->conf, m->fd, m->sysfs) != rows[i].survive)
			fail_msg("row %u", i);
	}
}

static void
domain_is_that_of_the_own_region(void **state)
{
	struct machine *m = *state;

	put_region(m, "memory_controller\n");
	assert_known(run_as(m, "tcp", PROFILE_GRAN_CACHE_LINE), PROFILE_F_DOMAIN, PROFILE_DMP);
	put_file(m, "cpu_cache\n", BUS "/region3/persistence_domain");
	assert_known(run_as(m, "tcp", PROFILE_GRAN_BYTE), PROFILE_F_DOMAIN, PROFILE_MHP);
	assert_non_null(strstr(m->probe.profile.source[PROFILE_F_DOMAIN], "region3/persistence"));
	put_file(m, "moon_phase\n", BUS "/region3/persistence_domain");
	assert_unknown(run_as(m, "tcp", PROFILE_GRAN_BYTE), PROFILE_F_DOMAIN);
}

static void
domain_without_evidence_is_unknown(void **state)
{
	struct machine *m = *state;

	assert_unknown(run_as(m, "tcp", PROFILE_GRAN_BYTE), PROFILE_F_DOMAIN);
	put_region(m, NULL);
	assert_unknown(run_as(m, "tcp", PROFILE_GRAN_BYTE), PROFILE_F_DOMAIN);
}

static void
domain_of_a_disk_is_unknown(void **state)
{
	struct machine *m = *state;

	put_file(m, "cpu_cache\n", BUS "/region0/persistence_domain");
	put_file(m, "", "sys/devices/pci0000:00/virtio1/block/vda/uevent");
	put_link(m, m->block, "sys/devices/pci0000:00/virtio1/block/vda");
	assert_unknown(run_as(m, "tcp", PROFILE_GRAN_PAGE), PROFILE_F_DOMAIN);
}

static void
stacked_devices_must_agree(void **state)
{
	struct machine *m = *state;

	put_file(m, "cpu_cache\n", BUS "/region0/persistence_domain");
	put_file(m, "", BUS "/region0/namespace0.0/block/pmem0/uevent");
	put_file(m, "cpu_cache\n", BUS "/region1/persistence_domain");
	put_file(m, "", BUS "/region1/namespace1.0/block/pmem1/uevent");
	put_link(m, "sys/devices/virtual/block/dm-0/slaves/pmem0",
		 BUS "/region0/namespace0.0/block/pmem0");
	put_link(m, "sys/devices/virtual/block/dm-0/slaves/pmem1",
		 BUS "/region1/namespace1.0/block/pmem1");
	put_link(m, m->block, "sys/devices/virtual/block/dm-0");
	assert_known(run_as(m, "tcp", PROFILE_GRAN_BYTE), PROFILE_F_DOMAIN, PROFILE_MHP);
	put_file(m, "memory_controller\n", BUS "/region1/persistence_domain");
	assert_unknown(run_as(m, "tcp", PROFILE_GRAN_BYTE), PROFILE_F_DOMAIN);
}

/* ---- provider ---- */

static void
put_rnic(struct machine *m, const char *name, const char *device, const char *node_type)
{
	char path[256];
	char to[256];

	(void)snprintf(to, sizeof(to), "sys/devices/%s/infiniband/%s", device, name);
	put_file(m, node_type, "%s/node_type", to);
	(void)snprintf(path, sizeof(path), "sys/class/infiniband/%s", name);
	put_link(m, path, to);
	(void)snprintf(path, sizeof(path), "sys/devices/%s/infiniband/%s/device", device, name);
	(void)snprintf(to, sizeof(to), "sys/devices/%s", device);
	put_link(m, path, to);
}

#define PORT  "pci0000:16/0000:16:02.0"
#define PORT2 "pci0000:64/0000:64:00.0"

static void
provider_class_is_that_of_the_least_device(void **state)
{
	struct machine *m = *state;

	assert_known(run_as(m, "tcp", -1), PROFILE_F_PROVIDER, PROFILE_PROVIDER_SOFTWARE);
	assert_unknown(run_as(m, "verbs", -1), PROFILE_F_PROVIDER);
	assert_unknown(run_as(m, "carrier-pigeon", -1), PROFILE_F_PROVIDER);
	put_rnic(m, "mlx5_0", PORT "/0000:17:00.0", "1: CA\n");
	assert_known(run_as(m, "verbs", -1), PROFILE_F_PROVIDER, PROFILE_PROVIDER_IB);
	put_rnic(m, "iw0", PORT2 "/0000:65:00.0", "4: RNIC\n");
	assert_known(run_as(m, "verbs", -1), PROFILE_F_PROVIDER, PROFILE_PROVIDER_IWARP);
	put_rnic(m, "fast0", "virtual", "1: CA\n"); /* a soft RNIC by another name */
	assert_known(run_as(m, "verbs", -1), PROFILE_F_PROVIDER, PROFILE_PROVIDER_SOFTWARE);
	put_rnic(m, "usnic_0", PORT2 "/0000:66:00.0", "6: usNIC UDP\n");
	assert_unknown(run_as(m, "verbs", -1), PROFILE_F_PROVIDER);
}

static void
soft_rnics_are_software(void **state)
{
	struct machine *m = *state;

	put_rnic(m, "siw0", "virtual", "4: RNIC\n");
	assert_known(run_as(m, "verbs", -1), PROFILE_F_PROVIDER, PROFILE_PROVIDER_SOFTWARE);
}

/* They hang on a bus and say "1: CA", and their drivers copy all that comes. */
static void
adapters_without_placement_are_software(void **state)
{
	static const char *const drivers[] = {"hfi1", "ib_qib", "vmw_pvrdma"};
	struct machine *m = *state;
	char name[32], device[64], path[128], to[128];

	put_rnic(m, "mlx5_0", PORT "/0000:17:00.0", "1: CA\n");
	put_file(m, "", "sys/bus/pci/drivers/mlx5_core/bind");
	put_link(m, "sys/devices/" PORT "/0000:17:00.0/driver", "sys/bus/pci/drivers/mlx5_core");
	assert_known(run_as(m, "verbs", -1), PROFILE_F_PROVIDER, PROFILE_PROVIDER_IB);
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		(void)snprintf(name, sizeof(name), "%s_0", drivers[i]);
		(void)snprintf(device, sizeof(device), PORT2 "/0000:65:00.%zu", i);
		put_rnic(m, name, device, "1: CA\n");
		(void)snprintf(to, sizeof(to), "sys/bus/pci/drivers/%s", drivers[i]);
		put_file(m, "", "%s/bind", to);
		(void)snprintf(path, sizeof(path), "sys/devices/%s/driver", device);
		put_link(m, path, to);
		assert_known(run_as(m, "verbs", -1), PROFILE_F_PROVIDER, PROFILE_PROVIDER_SOFTWARE);
		(void)snprintf(path, sizeof(path), "%s/sys/class/infiniband/%s", m->base, name);
		assert_int_equal(unlink(path), 0);
		assert_known(run_as(m, "verbs", -1), PROFILE_F_PROVIDER, PROFILE_PROVIDER_IB);
	}
}

/* ---- DDIO ---- */

#define CONFIG_SIZE 4096

static void
put_config(struct machine *m, const char *port, const uint8_t *config, size_t size)
{
	char path[300];
	FILE *f;

	put_file(m, "", "sys/devices/%s/config", port);
	(void)snprintf(path, sizeof(path), "%s/sys/devices/%s/config", m->base, port);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(config, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

/* An Intel bridge with DDIO switched off beyond doubt. */
static void
config_off(uint8_t config[CONFIG_SIZE])
{
	memset(config, 0, CONFIG_SIZE);
	config[0] = 0x86;
	config[1] = 0x80;
	config[0x0e] = 0x81;
	config[0x185] = 0x01;
}

static void
ddio_is_off_only_by_the_exact_bits(void **state)
{
	static const struct {
		unsigned at;
		uint8_t flip;
	} spoil[] = {{0x180, 0x80}, {0x180, 0x08}, {0x180, 0x88}, {0x185, 0x01},
		     {0x00, 0x01},  {0x01, 0x80},  {0x0e, 0x01}};
	struct machine *m = *state;
	uint8_t config[CONFIG_SIZE];

	put_rnic(m, "mlx5_0", PORT "/0000:17:00.0", "1: CA\n");
	assert_unknown(run_as(m, "verbs", -1), PROFILE_F_DDIO);
	config_off(config);
	put_config(m, PORT, config, sizeof(config));
	assert_known(run_as(m, "verbs", -1), PROFILE_F_DDIO, PROFILE_DDIO_OFF);
	assert_unknown(run_as(m, "tcp", -1), PROFILE_F_DDIO);
	for (size_t i = 0; i < sizeof(spoil) / sizeof(spoil[0]); i++) {
		config_off(config);
		config[spoil[i].at] ^= spoil[i].flip;
		put_config(m, PORT, config, sizeof(config));
		assert_unknown(run_as(m, "verbs", -1), PROFILE_F_DDIO);
	}
	/* What one who is not root can read. */
	config_off(config);
	put_config(m, PORT, config, 64);
	assert_unknown(run_as(m, "verbs", -1), PROFILE_F_DDIO);
	assert_non_null(strstr(m->probe.profile.source[PROFILE_F_DDIO], "needs root"));
}

static void
ddio_must_be_off_at_every_port(void **state)
{
	struct machine *m = *state;
	uint8_t config[CONFIG_SIZE];

	config_off(config);
	put_rnic(m, "mlx5_0", PORT "/0000:17:00.0", "1: CA\n");
	put_rnic(m, "mlx5_1", PORT2 "/0000:65:00.0", "1: CA\n");
	put_config(m, PORT, config, sizeof(config));
	put_config(m, PORT2, config, sizeof(config));
	assert_known(run_as(m, "verbs", -1), PROFILE_F_DDIO, PROFILE_DDIO_OFF);
	config[0x180] = 0x80;
	put_config(m, PORT2, config, sizeof(config));
	assert_unknown(run_as(m, "verbs", -1), PROFILE_F_DDIO);
}

static void
ddio_registers_of_other_processors_prove_nothing(void **state)
{
	static const char *const others[] = {ICE_LAKE, AMD, "", "vendor_id"};
	struct machine *m = *state;
	uint8_t config[CONFIG_SIZE];

	config_off(config);
	put_rnic(m, "mlx5_0", PORT "/0000:17:00.0", "1: CA\n");
	put_config(m, PORT, config, sizeof(config));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		put_file(m, others[i], "proc/cpuinfo");
		assert_unknown(run_as(m, "verbs", -1), PROFILE_F_DDIO);
	}
}

/* ---- the rest ---- */

static void
state_that(struct machine *m, enum profile_field f, int value, bool trust)
{
	m->conf.stated[f] = (struct conf_stated){.given = true, .trust = trust, .value = value};
}

static void
assert_source(const struct machine *m, enum profile_field f, const char *source)
{
	assert_string_equal(m->probe.profile.source[f], source);
}

static void
assert_refused(struct machine *m, const char *provider, const char *text)
{
	enum profile_granularity g = PROFILE_GRAN_CACHE_LINE;
	struct err e;

	err_clear(&e);
	assert_int_equal(probe_run(&m->conf, m->fd, &g, provider, m->sysfs, &m->probe, &e),
			 REPL_E_REFUSED);
	if (!strstr(e.text, text))
		fail_msg("no '%s' in: %s", text, e.text);
	assert_int_equal(e.reason, REPL_REASON_CONFIG);
}

static void
the_admins_word_stands_where_nothing_is_seen(void **state)
{
	struct machine *m = *state;
	const struct profile *p;

	state_that(m, PROFILE_F_DDIO, PROFILE_DDIO_OFF, false);
	state_that(m, PROFILE_F_DOMAIN, PROFILE_WSP, true);
	state_that(m, PROFILE_F_RQWRB, PROFILE_RQWRB_PM, false);
	state_that(m, PROFILE_F_PROVIDER, PROFILE_PROVIDER_IWARP, false);
	p = run_as(m, "verbs", -1);
	assert_known(p, PROFILE_F_DDIO, PROFILE_DDIO_OFF);
	assert_known(p, PROFILE_F_DOMAIN, PROFILE_WSP);
	assert_known(p, PROFILE_F_RQWRB, PROFILE_RQWRB_PM);
	assert_known(p, PROFILE_F_PROVIDER, PROFILE_PROVIDER_IWARP);
	assert_source(m, PROFILE_F_DDIO, "repld.conf: ddio");
	assert_source(m, PROFILE_F_DOMAIN, "repld.conf: persistence-domain");
	assert_source(m, PROFILE_F_RQWRB, "repld.conf: rqwrb");
	assert_source(m, PROFILE_F_PROVIDER, "repld.conf: provider-class");
}

/* The probe's own word on native flush comes from the fabric, not from sysfs. */
static void
a_flush_is_believed_where_nobody_knows_better(void **state)
{
	struct machine *m = *state;
	struct probe_seen seen = {.known = false, .text = "a claim", .source = "libfabric"};
	struct probe *p = &m->probe;
	struct err e;

	err_clear(&e);
	(void)run_as(m, "tcp", -1);
	assert_int_equal(probe_field(&m->conf, PROFILE_F_FLUSH, &seen, p, &e), 0);
	assert_int_equal(profile_get(&p->profile, PROFILE_F_FLUSH), PROFILE_FLUSH_NO);
	assert_source(m, PROFILE_F_FLUSH, "libfabric: a claim");
	state_that(m, PROFILE_F_FLUSH, PROFILE_FLUSH_YES, false);
	assert_int_equal(probe_field(&m->conf, PROFILE_F_FLUSH, &seen, p, &e), 0);
	assert_known(&p->profile, PROFILE_F_FLUSH, PROFILE_FLUSH_YES);
	seen = (struct probe_seen){
		.known = true, .value = PROFILE_FLUSH_NO, .text = "no", .source = "rxe0"};
	assert_int_equal(probe_field(&m->conf, PROFILE_F_FLUSH, &seen, p, &e), REPL_E_REFUSED);
	assert_non_null(strstr(e.text, "yes contradicts the evidence, 'no' (rxe0)"));
	seen.value = PROFILE_FLUSH_YES;
	state_that(m, PROFILE_F_FLUSH, PROFILE_FLUSH_NO, false);
	assert_int_equal(probe_field(&m->conf, PROFILE_F_FLUSH, &seen, p, &e), 0);
	assert_known(&p->profile, PROFILE_F_FLUSH, PROFILE_FLUSH_NO);
}

static void
a_word_that_agrees_with_evidence_is_taken(void **state)
{
	struct machine *m = *state;

	put_region(m, "cpu_cache\n");
	state_that(m, PROFILE_F_DOMAIN, PROFILE_MHP, false);
	state_that(m, PROFILE_F_PROVIDER, PROFILE_PROVIDER_SOFTWARE, true);
	assert_known(run_as(m, "tcp", PROFILE_GRAN_BYTE), PROFILE_F_DOMAIN, PROFILE_MHP);
	assert_source(m, PROFILE_F_DOMAIN, "repld.conf: persistence-domain");
	assert_source(m, PROFILE_F_PROVIDER, "repld.conf: provider-class");
}

static void
a_word_against_evidence_is_refused_unless_trusted(void **state)
{
	struct machine *m = *state;
	const struct profile *p;

	put_region(m, "memory_controller\n");
	state_that(m, PROFILE_F_DOMAIN, PROFILE_WSP, false);
	assert_refused(m, "tcp",
		       "repld.conf: key 'persistence-domain': wsp contradicts the evidence, "
		       "'memory_controller' (");
	assert_refused(m, "tcp", "'persistence-domain = wsp trust-me'");
	state_that(m, PROFILE_F_DOMAIN, PROFILE_WSP, true);
	p = run_as(m, "tcp", PROFILE_GRAN_CACHE_LINE);
	assert_known(p, PROFILE_F_DOMAIN, PROFILE_WSP);
	assert_non_null(
		strstr(p->source[PROFILE_F_DOMAIN], "repld.conf: persistence-domain, against "));
	assert_non_null(strstr(p->source[PROFILE_F_DOMAIN], "(memory_controller), trust-me"));
	assert_string_equal(fact(m, "region-persistence-domain"), "memory_controller");
	state_that(m, PROFILE_F_PROVIDER, PROFILE_PROVIDER_IB, false);
	assert_refused(m, "tcp", "key 'provider-class': ib contradicts the evidence, 'tcp'");
	state_that(m, PROFILE_F_PROVIDER, PROFILE_PROVIDER_IB, true);
	assert_known(run_as(m, "tcp", PROFILE_GRAN_CACHE_LINE), PROFILE_F_PROVIDER,
		     PROFILE_PROVIDER_IB);
}

static void
ddio_against_the_registers_is_refused(void **state)
{
	struct machine *m = *state;
	uint8_t config[CONFIG_SIZE];

	config_off(config);
	put_rnic(m, "mlx5_0", PORT "/0000:17:00.0", "1: CA\n");
	put_config(m, PORT, config, sizeof(config));
	state_that(m, PROFILE_F_DDIO, PROFILE_DDIO_ON, false);
	assert_refused(m, "verbs", "key 'ddio': on contradicts the evidence, 'off by PERFCTRLSTS'");
	state_that(m, PROFILE_F_DDIO, PROFILE_DDIO_ON, true);
	assert_known(run_as(m, "verbs", -1), PROFILE_F_DDIO, PROFILE_DDIO_ON);
}

/* A ring in the page cache is worth nothing; to have none is always allowed. */
static void
receive_buffers_are_as_durable_as_the_pool(void **state)
{
	struct machine *m = *state;

	if (strcmp((run_as(m, "tcp", -1), m->probe.profile.filesystem), "tmpfs") == 0)
		skip();
	assert_unknown(&m->probe.profile, PROFILE_F_RQWRB);
	assert_known(run_as(m, "tcp", PROFILE_GRAN_PAGE), PROFILE_F_RQWRB, PROFILE_RQWRB_DRAM);
	assert_known(run_as(m, "tcp", PROFILE_GRAN_BYTE), PROFILE_F_RQWRB, PROFILE_RQWRB_PM);
	state_that(m, PROFILE_F_RQWRB, PROFILE_RQWRB_DRAM, false);
	assert_known(run_as(m, "tcp", PROFILE_GRAN_BYTE), PROFILE_F_RQWRB, PROFILE_RQWRB_DRAM);
	assert_source(m, PROFILE_F_RQWRB, "repld.conf: rqwrb");
}

static void
durability_class_follows_granularity(void **state)
{
	struct machine *m = *state;

	if (strcmp((run_as(m, "tcp", -1), m->probe.profile.filesystem), "tmpfs") == 0)
		skip();
	assert_unknown(&m->probe.profile, PROFILE_F_CLASS);
	assert_unknown(&m->probe.profile, PROFILE_F_GRANULARITY);
	assert_known(run_as(m, "tcp", PROFILE_GRAN_PAGE), PROFILE_F_CLASS, PROFILE_CLASS_PAGE);
	assert_known(run_as(m, "tcp", PROFILE_GRAN_BYTE), PROFILE_F_CLASS, PROFILE_CLASS_MEDIA);
	assert_known(run_as(m, "tcp", PROFILE_GRAN_CACHE_LINE), PROFILE_F_CLASS,
		     PROFILE_CLASS_MEDIA);
}

static void
tmpfs_is_memory(void **state)
{
	struct machine *m = *state;

	(void)close(m->fd);
	m->fd = memfd_create("pool", MFD_CLOEXEC); /* a file on the kernel's own tmpfs */
	assert_true(m->fd >= 0);
	assert_known(run_as(m, "tcp", PROFILE_GRAN_BYTE), PROFILE_F_CLASS, PROFILE_CLASS_MEMORY);
	assert_known(run_as(m, "tcp", -1), PROFILE_F_CLASS, PROFILE_CLASS_MEMORY);
	assert_string_equal(m->probe.profile.filesystem, "tmpfs");
}

/* /dev is devtmpfs, with the magic of tmpfs; a devdax device is not memory. */
static void
device_file_is_not_memory(void **state)
{
	struct machine *m = *state;

	(void)close(m->fd);
	m->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(m->fd >= 0);
	put_file(m, "memory_controller", BUS "/region1/persistence_domain");
	put_file(m, "", BUS "/region1/dax1.0/dax1.0/uevent");
	put_link(m, "sys/dev/char/1:3", BUS "/region1/dax1.0/dax1.0");
	assert_known(run_as(m, "tcp", PROFILE_GRAN_CACHE_LINE), PROFILE_F_CLASS,
		     PROFILE_CLASS_MEDIA);
	assert_known(&m->probe.profile, PROFILE_F_DOMAIN, PROFILE_DMP);
	assert_string_equal(m->probe.profile.filesystem, "devdax");
}

static void
this_machine_can_be_probed(void **state)
{
	static const char *const names[] = {
		"kernel",       "cpu-vendor", "cpu-model",  "page-size",         "memlock-limit",
		"nofile-limit", "filesystem", "free-space", "store-granularity", "provider"};
	struct machine *m = *state;
	struct err e;

	(void)strcpy(m->sysfs, "/sys");
	(void)run_as(m, "tcp", PROFILE_GRAN_PAGE);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!fact(m, names[i])[0])
			fail_msg("no fact %s", names[i]);
	}
	assert_true(m->probe.fact_count < PROBE_FACTS_MAX);
	assert_int_equal(probe_run(&m->conf, -1, NULL, "tcp", "/sys", &m->probe, &e), REPL_E_IO);
}

#define MACHINE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		MACHINE_TEST(caches_survive_by_evidence_or_word),
		MACHINE_TEST(domain_is_that_of_the_own_region),
		MACHINE_TEST(domain_without_evidence_is_unknown),
		MACHINE_TEST(domain_of_a_disk_is_unknown),
		MACHINE_TEST(stacked_devices_must_agree),
		MACHINE_TEST(provider_class_is_that_of_the_least_device),
		MACHINE_TEST(soft_rnics_are_software),
		MACHINE_TEST(adapters_without_placement_are_software),
		MACHINE_TEST(ddio_is_off_only_by_the_exact_bits),
		MACHINE_TEST(ddio_must_be_off_at_every_port),
		MACHINE_TEST(ddio_registers_of_other_processors_prove_nothing),
		MACHINE_TEST(the_admins_word_stands_where_nothing_is_seen),
		MACHINE_TEST(a_flush_is_believed_where_nobody_knows_better),
		MACHINE_TEST(a_word_that_agrees_with_evidence_is_taken),
		MACHINE_TEST(a_word_against_evidence_is_refused_unless_trusted),
		MACHINE_TEST(ddio_against_the_registers_is_refused),
		MACHINE_TEST(receive_buffers_are_as_durable_as_the_pool),
		MACHINE_TEST(durability_class_follows_granularity),
		MACHINE_TEST(tmpfs_is_memory),
		MACHINE_TEST(device_file_is_not_memory),
		MACHINE_TEST(this_machine_can_be_probed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
