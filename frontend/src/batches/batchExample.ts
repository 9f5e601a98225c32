import { doorBase } from "../shared/callExamples";

/** A batch as a program makes one with OpenAI's client; works as pasted once the key is in the environment. */
export function batchExample(doorUrl: string, model: string): string {
  return `import json
import os
from openai import OpenAI

client = OpenAI(base_url="${doorBase(doorUrl)}/v1", api_key=os.environ["VENEER_API_KEY"])
questions = ["Where is the treasure?", "Who hid it?"]
lines = [
    {
        "custom_id": f"question-{number}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": ${JSON.stringify(model)}, "max_tokens": 64, "messages": [{"role": "user", "content": text}]},
    }
    for number, text in enumerate(questions)
]
raw = "\\n".join(json.dumps(line) for line in lines).encode()
file = client.files.create(file=("lines.jsonl", raw), purpose="batch")
batch = client.batches.create(
    input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
)
print(batch.id, batch.status)`;
}

/** Reading a file of a batch: only the key that made the batch may. */
export function fileExample(doorUrl: string, fileId: string): string {
  return `curl ${doorBase(doorUrl)}/v1/files/${fileId}/content \\
  -H "Authorization: Bearer $VENEER_API_KEY"`;
}
