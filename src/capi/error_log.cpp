// SPDX-License-Identifier: Apache-2.0
#include <span>

#include "capi/handles.hpp"

using tessera::capi::guarded;
using tessera::capi::required;

extern "C" {

tessera_status tessera_error_log_create(const tessera_context* context, uint32_t words,
                                        tessera_error_log** log) {
  return guarded([&] {
    required(log, "log");
    *log = new tessera_error_log{tessera::ErrorLog(required(context, "context").context, words)};
  });
}

tessera_status tessera_stream_set_error_log(tessera_stream* stream, const tessera_error_log* log) {
  return guarded([&] {
    required(stream, "stream").errors = log == nullptr ? std::nullopt : std::optional(log->log);
  });
}

tessera_status tessera_error_log_check(const tessera_error_log* log) {
  return guarded([&] { tessera::check_errors(required(log, "log").log); });
}

tessera_status tessera_error_log_words(const tessera_error_log* log, tessera_tensor** words) {
  return guarded([&] {
    required(words, "words");
    *words = new tessera_tensor{required(log, "log").log.words()};
  });
}

tessera_status tessera_error_log_check_words(const tessera_error_log* log, const int32_t* words,
                                             size_t count) {
  return guarded([&] {
    if (count > 0) required(words, "words");
    tessera::check_errors(required(log, "log").log, std::span<const std::int32_t>(words, count));
  });
}

tessera_status tessera_error_log_clear(const tessera_error_log* log) {
  return guarded([&] { required(log, "log").log.clear(); });
}

void tessera_error_log_destroy(tessera_error_log* log) { delete log; }

}  // extern "C"
