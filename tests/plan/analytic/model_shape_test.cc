#include "trireme/plan/analytic/model_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "trireme/error.h"

namespace trireme::analytic {
namespace {

using ::testing::HasSubstr;

/// Counts that their authors, or the checkpoints, give.
TEST(ModelShape, ParametersOfKnownModelsAreExact) {
  EXPECT_EQ(parameters(model("llama3-8b")), 8'030'261'248);
  EXPECT_EQ(parameters(model("llama3-70b")), 70'553'706'496);
  EXPECT_EQ(parameters(model("llama3-405b")), 405'853'388'800);
  EXPECT_EQ(parameters(model("llama-13b")), 13'015'864'320);
  EXPECT_EQ(parameters(model("llama-65b")), 65'285'660'672);
  EXPECT_EQ(parameters(model("llama2-7b")), 6'738'415'616);
  EXPECT_EQ(parameters(model("llama2-70b")), 68'976'648'192);
  EXPECT_EQ(parameters(model("mixtral-8x7b")), 46'702'792'704);
  EXPECT_EQ(parameters(model("bloom-176b")), 176'247'271'424);
  EXPECT_EQ(parameters(model("t5-large")), 737'668'096);
  EXPECT_EQ(parameters(model("t5-3b")), 2'851'598'336);
  EXPECT_EQ(parameters(model("bert-base")), 110'106'428);
  EXPECT_EQ(parameters(model("bert-large")), 336'226'108);
  EXPECT_EQ(parameters(model("mpt-125m")), 125'311'488);
  EXPECT_EQ(parameters(model("mpt-7b")), 6'658'859'008);
  EXPECT_EQ(parameters(model("mpt-30b")), 29'975'214'080);
  EXPECT_EQ(parameters(model("mpt-70b")), 64'862'437'376);
  EXPECT_EQ(parameters(model("resnet50")), 25'557'032);
  EXPECT_EQ(parameters(model("resnet101")), 44'549'160);
  EXPECT_EQ(parameters(model("resnet152")), 60'192'808);
}

/// 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)): arXiv 2104.04473, equation 2.
TEST(ModelShape, ParametersOfAGptAreTheFormula) {
  const ModelShape shape = model("gpt-1t");
  const double h = 25600, layers = 128, vocab = 51200, positions = 2048;
  const double formula =
      12 * layers * h * h * (1 + 13 / (12 * h) + (vocab + positions) / (12 * layers * h));
  EXPECT_NEAR(static_cast<double>(parameters(shape)), formula, 2 * h);
}

/// 72 B s L h^2 (1 + s/6h + V/12Lh): equation 3 without the second forward.
TEST(ModelShape, FlopsAreTheFormula) {
  const double h = 12288, layers = 96, vocab = 51200, s = 2048;
  const double formula = 72 * s * layers * h * h * (1 + s / (6 * h) + vocab / (12 * layers * h));
  EXPECT_NEAR(model_flops(model("gpt3-175b"), 2048) / formula, 1, 1e-12);
  // 4.1 billion multiplications and additions a picture.
  EXPECT_NEAR(model_flops(model("resnet50"), 224), 3 * 2 * 4.09e9, 3 * 2 * 0.02e9);
}

TEST(ModelShape, NamesAreUniqueAndTheirShapesCanBe) {
  std::set<std::string> names;
  for (const ModelShape& shape : models()) {
    EXPECT_TRUE(names.insert(shape.name).second) << shape.name;
    EXPECT_NO_THROW(check(shape)) << shape.name;
  }
}

TEST(ModelShape, NamesOfPublishedTablesAreRecognised) {
  const auto name_of = [](const char* text) {
    const ModelShape* shape = model_of_text(text);
    return shape == nullptr ? std::string() : shape->name;
  };
  EXPECT_EQ(name_of("Llama 3.1 405B"), "llama3-405b");
  EXPECT_EQ(name_of("LLAMA2-70B"), "llama2-70b");
  EXPECT_EQ(name_of("MPT 7b"), "mpt-7b");
  EXPECT_EQ(name_of("GPT-3 175B"), "gpt3-175b");
  EXPECT_EQ(name_of("GPT3-20B"), "gpt3-20b");
  EXPECT_EQ(name_of("Nemotron-340B"), "nemotron-340b");
  EXPECT_EQ(name_of("ResNet-101"), "resnet101");
  EXPECT_EQ(name_of("GPT-2 52B"), "gpt2-52b");
  EXPECT_EQ(name_of("LLaMA 65B"), "llama-65b");
  EXPECT_EQ(name_of("BERT-Large"), "bert-large");
  EXPECT_EQ(name_of("T5-3B"), "t5-3b");
  EXPECT_EQ(name_of("T5 3B"), "nemo-t5-3b");
  EXPECT_EQ(name_of("AmoebaNet-D (18,256)"), "");
}

TEST(ModelShape, WhatCannotBeIsRefused) {
  ModelShape shape = gpt_shape("mine", 2, 64, 3);
  shape.kv_heads = 2;
  try {
    check(shape);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("3 heads are no multiple of 2 kv_heads"));
  }
  EXPECT_THROW(check(gpt_shape("mine", 0, 64, 4)), Error);
  EXPECT_THROW(check(gpt_shape("mine", 2, 64, 0)), Error);
  EXPECT_THROW(model("gpt-2.7182b"), Error);
}

}  // namespace
}  // namespace trireme::analytic
