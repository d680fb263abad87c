#include "trireme/engine/data_parallel/replica_check.h"

#include <xxhash.h>

namespace trireme::data_parallel {

void attach_value_hashes(const parameters::ParameterStore& store, collectives::Group& group) {
  for (std::size_t b = 0; b < store.map().buckets.size(); ++b) {
    const at::Tensor& values = store.flat_values(static_cast<int>(b));
    if (values.defined()) {
      group.attach_hash(XXH3_64bits(values.const_data_ptr(), values.nbytes()));
    }
  }
}

}  // namespace trireme::data_parallel
