// Any bytes are either a profile that survives the round trip byte for byte and is judged by
// `check` without harm, or a trireme::Error.

#include <cstdint>
#include <cstdlib>

#include "tests/graphs/sample_graphs.h"
#include "trireme/error.h"
#include "trireme/plan/profile/profile_json.h"
#include "trireme/plan/profile/profile_show.h"

namespace profile = trireme::profile;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const trireme::graph::Graph kGraph = trireme::graph::testing::make_mlp();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  profile::Profile read;
  try {
    read = profile::profile_from_json(
        trireme::parse_document(profile::kProfileDocument, text, "input"));
  } catch (const trireme::Error&) {
    return 0;
  }
  const auto text_of = [](const profile::Profile& p) {
    return trireme::to_document_text(profile::kProfileDocument, profile::to_json(p));
  };
  const std::string written = text_of(read);
  const profile::Profile back = profile::profile_from_json(
      trireme::parse_document(profile::kProfileDocument, written, "written"));
  if (text_of(back) != written) std::abort();
  try {
    profile::check(read, kGraph);
    profile::show(read, kGraph);
    profile::link_us(read, profile::LinkKind::kHost, 12345, true);
  } catch (const trireme::Error&) {
    return 0;
  }
  return 0;
}
