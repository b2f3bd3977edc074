/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays that grow by one element at a time. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Makes room for element n of an array of n elements of `size` bytes. array is the address of its
 * pointer, NULL at first. The capacity is the power of two at n or above, so that it is not stored: an
 * array that began otherwise cannot be grown. 0 or -ENOMEM; then the array is as it was.
 */
static inline int array_grow(void *array, size_t n, size_t size)
{
	void *old, *grown;

	if (n & (n - 1))
		return 0;
	memcpy(&old, array, sizeof(old)); /* of any type of pointer */
	grown = reallocarray(old, n ? 2 * n : 1, size);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	return 0;
}

#endif
