#include "trireme/base/device.h"

#include <gtest/gtest.h>

#include <functional>

#include "trireme/error.h"

namespace trireme {
namespace {

ErrorKind kind_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::kCancelled;
}

TEST(Device, TextFormParsesBack) {
  for (const Device& device :
       {Device{}, Device{DeviceKind::kCuda, 0}, Device{DeviceKind::kCuda, 12}}) {
    EXPECT_EQ(parse_device(to_text(device)), device) << to_text(device);
  }
  EXPECT_EQ(to_text(Device{}), "cpu");
  EXPECT_EQ(to_text(Device{DeviceKind::kCuda, 1}), "cuda:1");
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceKind::kCuda, 0}));
}

TEST(Device, RefusesOtherText) {
  for (const char* bad : {"", "gpu", "cpu:0", "cuda:", "cuda:x", "cuda:1 ", "cuda:-1", "cuda1",
                          "CPU", "cuda:99999999999"}) {
    EXPECT_EQ(kind_of([&] { parse_device(bad); }), ErrorKind::kInvalidArgument) << bad;
  }
}

TEST(Stream, OfACpuHasNothingToWaitFor) {
  const auto stream = make_stream({});
  const auto event = make_event({});
  EXPECT_EQ(stream->device(), Device{});
  EXPECT_TRUE(event->is_done());
  event->record(*stream);
  stream->run_after(*event);
  stream->wait();
  event->wait();
  EXPECT_TRUE(event->is_done());
}

TEST(Event, MeasuresTheTimeBetweenMarks) {
  const auto stream = make_stream({});
  const auto start = make_event({}), end = make_event({});
  EXPECT_EQ(kind_of([&] { end->since(*start); }), ErrorKind::kInvalidArgument);
  start->record(*stream);
  EXPECT_EQ(kind_of([&] { end->since(*start); }), ErrorKind::kInvalidArgument);
  end->record(*stream);
  EXPECT_GE(end->since(*start).count(), 0);
  EXPECT_LE(start->since(*end).count(), 0);
}

}  // namespace
}  // namespace trireme
