// SPDX-License-Identifier: Apache-2.0
// PTX text that is pointed at another target. What drivers make of it is for the devices to say.
#include "device/opencl/ptx_promotion.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tessera::device::opencl {
namespace {

const std::string kPtx =
    ".version 8.8\n.target sm_90, texmode_independent\n.address_size 64\n"
    ".entry f(\n)\n.reqntid 128, 1, 1\n{\n//@ wgmma.fence.sync.aligned;\n// a note\n}\n";

TEST(PtxPromotion, UncoversTheMarkedLinesAndCapsRegisters) {
  EXPECT_EQ(promote_ptx(kPtx, "sm_90a"),
            ".version 8.8\n.target sm_90a, texmode_independent\n.address_size 64\n"
            ".entry f(\n)\n.reqntid 128, 1, 1\n.minnctapersm 1\n{\n"
            "    wgmma.fence.sync.aligned;\n// a note\n}\n");
}

TEST(PtxPromotion, DropsTheNulThatEndsABinary) {
  EXPECT_EQ(promote_ptx(kPtx + '\0', "sm_90a"), promote_ptx(kPtx, "sm_90a"));
}

TEST(PtxPromotion, RefusesWhatIsNoPtxOfThatFamily) {
  EXPECT_EQ(promote_ptx("\x7f"
                        "ELF",
                        "sm_90a"),
            "");
  EXPECT_EQ(promote_ptx("", "sm_90a"), "");
  EXPECT_EQ(promote_ptx(kPtx, "sm_100a"), "");
  EXPECT_EQ(promote_ptx(kPtx, ""), "");
  EXPECT_EQ(promote_ptx(".target sm_90a\n", "sm_90a"), "");
}

}  // namespace
}  // namespace tessera::device::opencl
