// Channels between GPUs.

#include "tests/wire/collectives/gpus.h"
#include "trireme/wire/collectives/channel.h"
#include "trireme/wire/collectives/device/device_engine.h"

namespace trireme::collectives::test {
namespace {

using Channels = Gpu;

std::vector<std::int32_t> message(int number) {
  std::vector<std::int32_t> result(1'000'000 + number);
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<int>(i) * (number + 1);
  return result;
}

void send_and_recv(const Part& part, const Ready& /*ready*/) {
  constexpr int kMessages = 5;
  DeviceChannel channel(part.group.endpoint(), 0, 1,
                        {.id = 2, .device = part.device, .stream = &part.stream});
  std::vector<std::vector<std::int32_t>> contents;
  std::vector<std::span<std::byte>> buffers;
  std::vector<transport::WorkPtr> works;
  for (int i = 0; i < kMessages; ++i) {
    contents.push_back(message(i));
    if (part.group.group_rank() == 1) std::ranges::fill(contents[i], 0);
    buffers.push_back(part.upload(std::as_bytes(std::span(contents[i]))));
    works.push_back(part.group.group_rank() == 0 ? channel.send(buffers[i])
                                                 : channel.recv(buffers[i]));
  }
  for (int i = 0; i < kMessages; ++i) {
    run_after(part.stream, *works[i]);
    require(part.download<std::int32_t>(buffers[i]) == message(i), "message");
    wait_for(works[i]);
  }
}

TEST_F(Channels, MoveMessagesInStreamOrder) {
  if (gpu_count < 2) GTEST_SKIP() << "one GPU here; NCCL wants one for each rank";
  if (const auto reason = why_no_nccl()) GTEST_SKIP() << reason->message();
  expect_all_end_well({.num_ranks = 2, .num_gpus = 2}, send_and_recv);
}

}  // namespace
}  // namespace trireme::collectives::test
