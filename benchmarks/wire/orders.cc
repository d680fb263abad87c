#include "benchmarks/wire/orders.h"

#include <sstream>

#include "trireme/base/json.h"
#include "trireme/base/json_field.h"
#include "trireme/error.h"

namespace trireme::bench {

std::string to_text(const Order& order) {
  std::ostringstream line;
  line << collectives::to_text(order.what.operation) << ' ' << order.what.bytes << ' '
       << to_text(order.what.dtype) << ' ' << order.iterations << ' ' << order.warmups << ' '
       << (order.what.is_registered ? 1 : 0) << ' ' << order.sleep_us << ' '
       << (order.is_pass ? 1 : 0);
  return line.str();
}

Order parse_order(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string operation, dtype, rest;
  int registered = 0, pass = 0;
  Order order;
  words >> operation >> order.what.bytes >> dtype >> order.iterations >> order.warmups >>
      registered >> order.sleep_us >> pass;
  const auto parsed = parse_dtype(dtype);
  if (!words || words >> rest || !parsed || order.what.bytes < 0 || order.iterations < 1 ||
      order.warmups < 0 || order.sleep_us < 0 || (registered != 0 && registered != 1) ||
      (pass != 0 && pass != 1)) {
    throw Error(ErrorKind::kCorruptData, "'" + std::string(line) + "' is no order");
  }
  order.what.operation = parse_operations(operation).front();
  order.what.dtype = *parsed;
  order.what.is_registered = registered == 1;
  order.is_pass = pass == 1;
  return order;
}

std::string to_text(const Answer& answer) {
  return compact_text({{"unavailable", answer.unavailable},
                       {"times_us", answer.times_us},
                       {"cpu_s", answer.cpu_s},
                       {"wrong", answer.wrong},
                       {"digest", answer.digest},
                       {"entered_us", answer.entered_us},
                       {"left_us", answer.left_us}});
}

Answer parse_answer(std::string_view line) {
  const Json json = parse_json(line, "answer of a rank");
  JsonObject object(JsonField(json, "answer"));
  Answer answer;
  answer.unavailable = object.required("unavailable").text();
  answer.times_us =
      object.required("times_us").list([](const JsonField& field) { return field.real(); });
  answer.cpu_s = object.required("cpu_s").real();
  answer.wrong = object.required("wrong").integer(0);
  answer.digest = object.required("digest").text();
  answer.entered_us = object.required("entered_us").real();
  answer.left_us = object.required("left_us").real();
  object.finish();
  return answer;
}

}  // namespace trireme::bench
