// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(TESSERA_STATIC) || !defined(__GNUC__)
#define TESSERA_API
#else
#define TESSERA_API __attribute__((visibility("default")))
#endif
