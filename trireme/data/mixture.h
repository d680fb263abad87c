#pragma once

#include <cstdint>
#include <memory>

#include "trireme/data.h"

namespace trireme::data {

/// The same mixture for a training that uses each of its places `times` times (`repeat`); null where `source` or one of
/// its parts has an order of its own and is no mixture.
///
/// Letters: visit v = e T + p is pass p of place n = e N + i, of the N of an epoch of the mixture. It is of its part sample m, in
/// the part's own epoch, as ever, and that sample's visit is that epoch x T + p: another one in each pass.
std::shared_ptr<const Source> mixture_with_passes(const Source& source, std::int64_t times);

}  // namespace trireme::data
