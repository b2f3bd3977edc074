// SPDX-License-Identifier: BSD-2-Clause
#include "json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "text.h"

void json_text(struct json *o, const char *name, const char *foreign)
{
	__text struct text clean = {0};

	text_put_utf8(&clean, foreign, strlen(foreign));
	o->bad |= text_err(&clean) ||
		  !(*foreign ? cJSON_AddStringToObject(o->item, name, text_str(&clean))
			     : cJSON_AddNullToObject(o->item, name));
}

void json_number(struct json *o, const char *name, double value)
{
	o->bad |= !cJSON_AddNumberToObject(o->item, name, value);
}

void json_bool(struct json *o, const char *name, bool value)
{
	o->bad |= !cJSON_AddBoolToObject(o->item, name, value);
}

void json_null(struct json *o, const char *name)
{
	o->bad |= !cJSON_AddNullToObject(o->item, name);
}

void json_address(struct json *o, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	json_text(o, name, text);
}

void json_item(struct json *o, const char *name, cJSON *item)
{
	if (item && cJSON_AddItemToObject(o->item, name, item))
		return;
	cJSON_Delete(item);
	o->bad = true;
}

void json_append(struct json *array, cJSON *item)
{
	if (item && cJSON_AddItemToArray(array->item, item))
		return;
	cJSON_Delete(item);
	array->bad = true;
}

cJSON *json_take(struct json *o)
{
	if (!o->bad)
		return o->item;
	cJSON_Delete(o->item);
	o->item = NULL;
	return NULL;
}

int json_print(cJSON *item, FILE *to)
{
	char *text = item ? cJSON_Print(item) : NULL;
	int r = text ? 0 : -ENOMEM;

	if (text)
		fprintf(to, "%s\n", text);
	cJSON_free(text);
	cJSON_Delete(item);
	return r;
}
