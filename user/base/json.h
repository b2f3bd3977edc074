/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of JSON: members are added without a check of each; json_take() reports what failed. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

/* All functions set `bad` when memory is short. */
struct json {
	cJSON *item;
	bool bad;
};

static inline struct json json_object(void)
{
	return (struct json){.item = cJSON_CreateObject()};
}
static inline struct json json_array(void)
{
	return (struct json){.item = cJSON_CreateArray()};
}

/* Foreign text, made readable; null for no text. */
void json_text(struct json *o, const char *name, const char *foreign);
void json_number(struct json *o, const char *name, double value);
void json_bool(struct json *o, const char *name, bool value);
void json_null(struct json *o, const char *name);
/* "0x..": a number of JSON may be a double, which holds no address of 64 bits. */
void json_address(struct json *o, const char *name, uint64_t value);

/* Own the item in any case; NULL sets `bad`. */
void json_item(struct json *o, const char *name, cJSON *item);
void json_append(struct json *array, cJSON *item);

/* Returns the item; NULL: out of memory, and it is deleted. */
cJSON *json_take(struct json *o);

/* Prints and deletes the item, which may be NULL: -ENOMEM. */
int json_print(cJSON *item, FILE *to);

#endif
