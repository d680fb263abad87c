#include <algorithm>

#include "trireme/plan/analytic/layout_search.h"

namespace trireme::analytic {
namespace {

struct Megatron {
  const char* model;
  std::int64_t tensor, pipeline, data, microbatch, batch;
  double step_s;
};

/// The ten of 2021, DGX A100 with eight cards of 200 Gb/s.
void add_megatron(std::vector<PublishedLayout>& all) {
  for (const Megatron& one :
       {Megatron{"gpt-1.7b", 1, 1, 32, 16, 512, 3.53}, Megatron{"gpt-3.6b", 2, 1, 32, 16, 512, 3.7},
        Megatron{"gpt-7.5b", 4, 1, 32, 16, 512, 3.7}, Megatron{"gpt-18b", 8, 1, 32, 8, 1024, 9.4},
        Megatron{"gpt-39b", 8, 2, 32, 4, 1536, 14.45},
        Megatron{"gpt-76b", 8, 4, 32, 2, 1792, 16.06},
        Megatron{"gpt-145b", 8, 8, 24, 2, 2304, 24.82},
        Megatron{"gpt-310b", 8, 16, 15, 1, 2160, 37.61},
        Megatron{"gpt-530b", 8, 35, 9, 1, 2520, 54.08},
        Megatron{"gpt-1t", 8, 64, 6, 1, 3072, 102.63}}) {
    PublishedLayout published;
    published.model = one.model;
    published.machine = "dgx_a100";
    published.num_hosts = one.tensor * one.pipeline * one.data / 8;
    published.layout.tensor = one.tensor;
    published.layout.pipeline = one.pipeline;
    published.layout.data = one.data;
    published.layout.microbatch = one.microbatch;
    published.layout.global_batch = one.batch;
    published.layout.seq_len = 2048;
    published.layout.type = MatrixType::kF16;
    published.layout.recompute = RecomputeKind::kFull;
    published.step_s = one.step_s;
    published.source = "arXiv 2104.04473, table 1";
    all.push_back(published);
  }
}

/// MLPerf Training 5.0, 405B: 126 blocks over 64 parts, so that the first and the last have one.
PublishedLayout mlperf(std::int64_t num_hosts, std::int64_t batch, double step_s) {
  PublishedLayout one;
  one.model = "llama3-405b";
  one.machine = "dgx_h100";
  one.num_hosts = num_hosts;
  one.layout.tensor = 8;
  one.layout.pipeline = 8;
  one.layout.virtual_stages = 8;
  one.layout.context = 2;
  one.layout.data = num_hosts / 16;
  one.layout.microbatch = 1;
  one.layout.global_batch = batch;
  one.layout.seq_len = 8192;
  one.layout.type = MatrixType::kF8;
  one.layout.sharding = ShardingKind::kState;
  set_habits(machine(one.machine), one.layout);
  one.step_s = step_s;
  one.source = "mlcommons/training_results_v5.0, NVIDIA's llama31_405b on DGX H100";
  return one;
}

std::vector<PublishedLayout> make_published() {
  std::vector<PublishedLayout> all;
  add_megatron(all);
  // The split of the eight ranks of a model, batch and tokens are not published.
  PublishedLayout t5{"t5-3b", "p4d", 256,  {},
                     0,       0,     4.68, "AWS, December 2020 (another text: 4.86 days)"};
  t5.layout.tensor = 0;
  t5.layout.data = 256;
  all.push_back(t5);
  PublishedLayout gpt3{"gpt3-175b", "p4d", 120, {},
                       0,           32,    0,   "AWS machine learning blog, March 2022"};
  gpt3.layout.tensor = 0;
  gpt3.layout.data = 0;
  all.push_back(gpt3);
  PublishedLayout bloom{"bloom-176b",
                        "jean_zay_a100",
                        48,
                        {},
                        104.7,
                        0,
                        0,
                        "bigscience-workshop/bigscience train/tr11-176B-ml/README.md"};
  bloom.layout.tensor = 4;
  bloom.layout.pipeline = 12;
  bloom.layout.data = 8;
  bloom.layout.microbatch = 2;
  bloom.layout.global_batch = 2048;
  bloom.layout.seq_len = 2048;
  bloom.layout.recompute = RecomputeKind::kFull;
  bloom.layout.sharding = ShardingKind::kState;
  all.push_back(bloom);
  all.push_back(mlperf(64, 1152, 55.1));
  all.push_back(mlperf(1024, 1536, 5.18));
  return all;
}

}  // namespace

const std::vector<PublishedLayout>& published_layouts() {
  static const std::vector<PublishedLayout> kAll = make_published();
  return kAll;
}

std::vector<PublishedLayout> published_for(const std::string& model, const std::string& machine,
                                           std::int64_t num_hosts) {
  std::vector<PublishedLayout> result;
  std::ranges::copy_if(published_layouts(), std::back_inserter(result),
                       [&](const PublishedLayout& one) { return one.model == model; });
  std::ranges::stable_partition(result, [&](const PublishedLayout& one) {
    return one.machine == machine && one.num_hosts == num_hosts;
  });
  return result;
}

}  // namespace trireme::analytic
