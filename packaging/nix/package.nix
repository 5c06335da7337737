{ lib, rustPlatform }:

let
  source = ../..;
  workspace = (lib.importTOML (source + "/Cargo.toml")).workspace.package;
in
rustPlatform.buildRustPackage {
  pname = "blksum";
  inherit (workspace) version;
  src = lib.fileset.toSource {
    root = source;
    # What a checkout has beside its files.
    fileset = lib.fileset.difference source (
      lib.fileset.unions (map (name: lib.fileset.maybeMissing (source + "/${name}")) [ ".git" ".venv" "target" "fuzz/target" "bench/target" ])
    );
  };
  cargoLock.lockFile = source + "/Cargo.lock";

  # cargo without network is set up by then.
  buildPhase = ''
    runHook preBuild
    make build
    runHook postBuild
  '';
  checkPhase = ''
    runHook preCheck
    cargo test --lib -p blkhash -p blkhash-map -p blkimage
    runHook postCheck
  '';
  installPhase = ''
    runHook preInstall
    make install PREFIX=$out
    runHook postInstall
  '';
  postPatch = "patchShebangs scripts";

  meta = {
    description = "Checksums of disk images, whatever their format";
    homepage = workspace.repository;
    license = with lib.licenses; [ mit asl20 ];
    platforms = lib.platforms.linux;
    mainProgram = "blksum";
  };
}
