#include <cstdio>

#include "trireme/plan/graph/text_table.h"
#include "trireme/plan/partition/what_if.h"

namespace trireme::partition {
namespace {

std::string number(const char* format, double value) {
  char text[400];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::string show(const WhatIfs& what_ifs) {
  graph::Table table({"what if", ">step ms", ">a sample us", ">faster", ">peak"});
  const auto add = [&](const WhatIf& one) {
    const double faster =
        one.us_per_sample > 0 ? what_ifs.now.us_per_sample / one.us_per_sample : 1;
    table.add({one.change, number("%.3f", one.step_us / 1000), number("%.1f", one.us_per_sample),
               number("%.3fx", faster), graph::bytes_text(one.peak_bytes)});
  };
  add(what_ifs.now);
  for (const WhatIf& one : what_ifs.changes) add(one);
  return table.text();
}

}  // namespace trireme::partition
