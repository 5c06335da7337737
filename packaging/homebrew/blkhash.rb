class Blkhash < Formula
  desc "Checksums of disk images, whatever their format"
  homepage "https://github.com/blkhash/blkhash"
  url "https://github.com/blkhash/blkhash/releases/download/v0.10.0/blkhash-0.10.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/cli")
    %w[blkhash-capi blksum-capi].each do |library|
      system "cargo", "build", "--lib", "--locked", "--profile", "capi", "--package", library
    end
    system "make", "install", "PREFIX=#{prefix}", "BASHDIR=#{bash_completion}"
  end

  test do
    checksum = "b1a37d57301efe26db0ae98c681fb33bc7718e2d7eaa6d14bef667fdb0ce4153"
    (testpath/"disk.img").binwrite("A" * 65536)
    assert_match checksum, shell_output("#{bin}/blksum disk.img")
  end
end
