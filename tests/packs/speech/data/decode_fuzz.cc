// Any bytes are audio, as long as its header says, or a trireme::Error.

#include <cstdint>
#include <cstdlib>
#include <span>

#include "packs/speech/data/decode.h"
#include "tests/packs/speech/data/libsndfile_leaks.h"
#include "trireme/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trireme::speech;
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const Audio whole = decode_audio(bytes);
    if (whole.num_channels < 1 || whole.sample_rate < 1) std::abort();
    if (std::ssize(whole.samples) != whole.num_channels * whole.num_frames()) std::abort();
    if (audio_info(bytes).num_frames != whole.num_frames()) std::abort();
    const Audio mono = decode_audio(bytes, {.is_mono = true});
    if (mono.num_frames() != whole.num_frames()) std::abort();
  } catch (const trireme::Error&) {
    return 0;
  }
  return 0;
}
