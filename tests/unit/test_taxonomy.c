/* SPDX-License-Identifier: BSD-3-Clause */
/* The taxonomy has the paper's 72 rows, in order, each with its steps. */
#include "unit.h"

#include <stdio.h>

#include "taxonomy.h"

/* Written from the paper's tables and text, not from taxonomy.c. */
static const char *const golden[] = {
	"dmp,on,dram,write,singleton: write(a) send(&a) rsp-flush(&a) ack",
	"dmp,on,dram,write,compound: write(a) send(&a) rsp-flush(&a) ack"
	" write(b) send(&b) rsp-flush(&b) ack",
	"dmp,on,dram,writeimm,singleton: writeimm(a) rsp-flush(&a) ack",
	"dmp,on,dram,writeimm,compound: writeimm(a) rsp-flush(&a) ack"
	" writeimm(b) rsp-flush(&b) ack",
	"dmp,on,dram,send,singleton: send(a) rsp-copy(a) rsp-flush(&a) ack",
	"dmp,on,dram,send,compound: send(a,b) rsp-copy(a,b) rsp-flush(a,b) ack",
	"dmp,on,pm,write,singleton: write(a) send(&a) rsp-flush(&a) ack",
	"dmp,on,pm,write,compound: write(a) send(&a) rsp-flush(&a) ack"
	" write(b) send(&b) rsp-flush(&b) ack",
	"dmp,on,pm,writeimm,singleton: writeimm(a) rsp-flush(&a) ack",
	"dmp,on,pm,writeimm,compound: writeimm(a) rsp-flush(&a) ack"
	" writeimm(b) rsp-flush(&b) ack",
	"dmp,on,pm,send,singleton: send(a) rsp-copy(a) rsp-flush(&a) ack",
	"dmp,on,pm,send,compound: send(a,b) rsp-copy(a,b) rsp-flush(a,b) ack",
	"dmp,off,dram,write,singleton: write(a) flush comp",
	"dmp,off,dram,write,compound: write(a) flush write-atomic(b) flush comp",
	"dmp,off,dram,writeimm,singleton: writeimm(a) flush comp",
	"dmp,off,dram,writeimm,compound: writeimm(a) flush comp writeimm(b) flush comp",
	"dmp,off,dram,send,singleton: send(a) rsp-copy(a) rsp-flush(&a) ack",
	"dmp,off,dram,send,compound: send(a,b) rsp-copy(a,b) rsp-flush(a,b) ack",
	"dmp,off,pm,write,singleton: write(a) flush comp",
	"dmp,off,pm,write,compound: write(a) flush write-atomic(b) flush comp",
	"dmp,off,pm,writeimm,singleton: writeimm(a) flush comp",
	"dmp,off,pm,writeimm,compound: writeimm(a) flush comp writeimm(b) flush comp",
	"dmp,off,pm,send,singleton: send(a) flush comp",
	"dmp,off,pm,send,compound: send(a,b) flush comp",
	"mhp,on,dram,write,singleton: write(a) flush comp",
	"mhp,on,dram,write,compound: write(a) write(b) flush comp",
	"mhp,on,dram,writeimm,singleton: writeimm(a) flush comp",
	"mhp,on,dram,writeimm,compound: writeimm(a) writeimm(b) flush comp",
	"mhp,on,dram,send,singleton: send(a) rsp-copy(a) ack",
	"mhp,on,dram,send,compound: send(a,b) rsp-copy(a,b) ack",
	"mhp,on,pm,write,singleton: write(a) flush comp",
	"mhp,on,pm,write,compound: write(a) write(b) flush comp",
	"mhp,on,pm,writeimm,singleton: writeimm(a) flush comp",
	"mhp,on,pm,writeimm,compound: writeimm(a) writeimm(b) flush comp",
	"mhp,on,pm,send,singleton: send(a) flush comp",
	"mhp,on,pm,send,compound: send(a,b) flush comp",
	"mhp,off,dram,write,singleton: write(a) flush comp",
	"mhp,off,dram,write,compound: write(a) write(b) flush comp",
	"mhp,off,dram,writeimm,singleton: writeimm(a) flush comp",
	"mhp,off,dram,writeimm,compound: writeimm(a) writeimm(b) flush comp",
	"mhp,off,dram,send,singleton: send(a) rsp-copy(a) ack",
	"mhp,off,dram,send,compound: send(a,b) rsp-copy(a,b) ack",
	"mhp,off,pm,write,singleton: write(a) flush comp",
	"mhp,off,pm,write,compound: write(a) write(b) flush comp",
	"mhp,off,pm,writeimm,singleton: writeimm(a) flush comp",
	"mhp,off,pm,writeimm,compound: writeimm(a) writeimm(b) flush comp",
	"mhp,off,pm,send,singleton: send(a) flush comp",
	"mhp,off,pm,send,compound: send(a,b) flush comp",
	"wsp,on,dram,write,singleton: write(a) comp",
	"wsp,on,dram,write,compound: write(a) write(b) comp",
	"wsp,on,dram,writeimm,singleton: writeimm(a) comp",
	"wsp,on,dram,writeimm,compound: writeimm(a) writeimm(b) comp",
	"wsp,on,dram,send,singleton: send(a) rsp-copy(a) ack",
	"wsp,on,dram,send,compound: send(a,b) rsp-copy(a,b) ack",
	"wsp,on,pm,write,singleton: write(a) comp",
	"wsp,on,pm,write,compound: write(a) write(b) comp",
	"wsp,on,pm,writeimm,singleton: writeimm(a) comp",
	"wsp,on,pm,writeimm,compound: writeimm(a) writeimm(b) comp",
	"wsp,on,pm,send,singleton: send(a) comp",
	"wsp,on,pm,send,compound: send(a,b) comp",
	"wsp,off,dram,write,singleton: write(a) comp",
	"wsp,off,dram,write,compound: write(a) write(b) comp",
	"wsp,off,dram,writeimm,singleton: writeimm(a) comp",
	"wsp,off,dram,writeimm,compound: writeimm(a) writeimm(b) comp",
	"wsp,off,dram,send,singleton: send(a) rsp-copy(a) ack",
	"wsp,off,dram,send,compound: send(a,b) rsp-copy(a,b) ack",
	"wsp,off,pm,write,singleton: write(a) comp",
	"wsp,off,pm,write,compound: write(a) write(b) comp",
	"wsp,off,pm,writeimm,singleton: writeimm(a) comp",
	"wsp,off,pm,writeimm,compound: writeimm(a) writeimm(b) comp",
	"wsp,off,pm,send,singleton: send(a) comp",
	"wsp,off,pm,send,compound: send(a,b) comp",
};

static void
all_rows_are_the_papers(void **state)
{
	(void)state;
	assert_int_equal(sizeof(golden) / sizeof(golden[0]), TAXONOMY_ROWS);
	for (unsigned i = 0; i < TAXONOMY_ROWS; i++) {
		const struct taxonomy_row *row = taxonomy_row(i);
		char steps[256], line[512];

		assert_true(taxonomy_format(row->steps, steps, sizeof(steps)) < sizeof(steps));
		(void)snprintf(line, sizeof(line), "%s,%s,%s,%s,%s: %s",
			       profile_value_name(PROFILE_F_DOMAIN, (int)row->key.domain),
			       profile_value_name(PROFILE_F_DDIO, (int)row->key.ddio),
			       profile_value_name(PROFILE_F_RQWRB, (int)row->key.rqwrb),
			       taxonomy_op_name(row->key.op), taxonomy_update_name(row->key.update),
			       steps);
		assert_string_equal(line, golden[i]);
	}
	assert_null(taxonomy_row(TAXONOMY_ROWS));
}

static void
each_row_is_found_by_its_key(void **state)
{
	struct taxonomy_key key = taxonomy_row(0)->key;

	(void)state;
	for (unsigned i = 0; i < TAXONOMY_ROWS; i++) {
		const struct taxonomy_row *row = taxonomy_row(i);

		assert_ptr_equal(taxonomy_find(&row->key), row);
	}
	key.op = TAXONOMY_OP_COUNT;
	assert_null(taxonomy_find(&key));
}

static void
names_go_both_ways(void **state)
{
	(void)state;
	for (int op = 0; op < TAXONOMY_OP_COUNT; op++)
		assert_int_equal(taxonomy_op_by_name(taxonomy_op_name((enum taxonomy_op)op)), op);
	assert_int_equal(taxonomy_op_by_name("read"), -1);
	assert_int_equal(taxonomy_update_by_name("singleton"), TAXONOMY_SINGLETON);
	assert_int_equal(taxonomy_update_by_name("compound"), TAXONOMY_COMPOUND);
	assert_int_equal(taxonomy_update_by_name(""), -1);
	assert_null(taxonomy_op_name(TAXONOMY_OP_COUNT));
	assert_null(taxonomy_update_name(TAXONOMY_UPDATE_COUNT));
}

static void
every_step_has_a_word_and_a_meaning(void **state)
{
	(void)state;
	for (int s = STEP_END + 1; s < STEP_COUNT; s++) {
		assert_non_null(taxonomy_step_word((enum taxonomy_step)s));
		assert_true(strlen(taxonomy_step_text((enum taxonomy_step)s)) > 10);
	}
	assert_null(taxonomy_step_word(STEP_END));
	assert_null(taxonomy_step_text(STEP_COUNT));
}

static void
format_tells_the_length_it_needs(void **state)
{
	const enum taxonomy_step *steps = taxonomy_row(0)->steps;
	char whole[128], cut[8];
	size_t len = taxonomy_format(steps, whole, sizeof(whole));

	(void)state;
	assert_int_equal(len, strlen(whole));
	assert_int_equal(taxonomy_format(steps, cut, sizeof(cut)), len);
	assert_string_equal(cut, "write(a");
	assert_int_equal(taxonomy_format(steps, NULL, 0), len);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_rows_are_the_papers),
		cmocka_unit_test(each_row_is_found_by_its_key),
		cmocka_unit_test(names_go_both_ways),
		cmocka_unit_test(every_step_has_a_word_and_a_meaning),
		cmocka_unit_test(format_tells_the_length_it_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
