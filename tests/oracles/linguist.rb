# Results of GitHub's linguist: `ruby linguist.rb DIRECTORY < paths`, one JSON line for each file:
# path, language, generated, vendored, binary.
require "json"
require "linguist"

Dir.chdir(ARGV[0])
STDIN.each_line(chomp: true) do |path|
  blob = Linguist::FileBlob.new(path, Dir.pwd)
  puts [path, blob.language&.name, blob.generated?, blob.vendored?, blob.binary?].to_json
end
