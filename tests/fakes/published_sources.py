"""Made-up sources of prompts, in the shapes of the published ones: a model card and two checkouts of code.

Each is complete: its Python, when run, sends what its project would send.
"""

import json
from pathlib import Path
from typing import Final

TICKS: Final = "```"
CARD: Final = f"""\
---
license: apache-2.0
base_model:
  - Example/Base-4B
---

# Note keeper

The card of a made-up memory writer.

## Define the tools

{TICKS}python
NOTE = {{
    "type": "object",
    "properties": {{
        "key": {{"type": "string", "description": "A heading of a few words"}},
        "memory_type": {{"type": "string", "enum": ["LongTermMemory", "UserMemory"]}},
        "value": {{"type": "string"}},
        "tags": {{"type": "array", "items": {{"type": "string"}}}},
    }},
    "required": ["key", "memory_type", "value", "tags"],
}}
REASON = dict(type="object", properties={{"reason": {{"type": "string"}}}}, required=["reason"])
tools = [
    {{
        "type": "function",
        "function": {{
            "name": "ignore_memory",
            "description": ("Drops the turn: "
                            "smalltalk – “hello” – and what is known."),
            "parameters": REASON,
        }},
    }},
    {{
        "type": "function",
        "function": {{
            "name": "add_memory",
            "description": "Keeps notes.",
            "parameters": {{
                "type": "object",
                "properties": {{
                    "memory_list": {{"type": "array", "minItems": 1, "items": NOTE}},
                    "summary": {{"type": "string"}},
                }},
                "required": ["memory_list", "summary"],
                "additionalProperties": False,
            }},
        }},
    }},
    {{
        "type": "function",
        "function": {{
            "name": "search_memory",
            "description": "Looks notes up.",
            "parameters": {{"type": "object", "properties": {{"query": {{"type": "string"}}}}, "required": ["query"]}},
        }},
    }},
    {{
        "type": "function",
        "function": {{
            "name": "buffer_memory",
            "description": "Waits for the rest.",
            "parameters": REASON,
        }},
    }},
]
{TICKS}

## Ask for a decision

{TICKS}python
SYSTEM_PROMPT = (
    "You keep notes.\\n"
    "One action a turn: {{ignore, add, search, buffer}}.\\n\\n"
    "Guidelines:\\n- Keep names.  \\n"
)
conversation = "[user]: My name is Ada.\\n[assistant]: Noted."
messages = [
    {{"role": "system", "content": SYSTEM_PROMPT}},
    {{"role": "user", "content": f"Decide about this conversation now:\\n\\n{{conversation}}\\n"}},
]
{TICKS}

## Serve

{TICKS}bash
vllm serve Example/Note-4B --enable-auto-tool-choice
{TICKS}
"""

_FULL: Final = "Keep notes.\\n- search_memory\\n- add_memory\\n- buffer_memory\\n- ignore_memory"
_ASKED: Final = (
    '"Judge this talk:\\n\\n" "[user]: How is it?\\n" "[assistant]: Do you mean the boat?\\n" "[user]: Yes."'
)
_TOOLS: Final = json.dumps(
    [
        {"type": "function", "function": {"name": name, "description": "Does it.", "parameters": {"type": "object"}}}
        for name in ("search_memory", "add_memory", "buffer_memory", "ignore_memory")
    ]
)
CARD_OF_EXAMPLES: Final = f"""\
# Note keeper

## OpenAI-compatible API

The following example calls an endpoint.

{TICKS}python
import json
import requests

url = "https://YOUR_ENDPOINT/v1/chat/completions"

payload = {{
    "model": "Example/Note-4B",
    "extra_body": {{"chat_template_kwargs": {{"enable_thinking": True}}}},
    "messages": [
        {{"role": "system", "content": ("{_FULL}")}},
        {{"role": "user", "content": ({_ASKED})}},
    ],
    "tools": {_TOOLS},
    "tool_choice": "required",
    "temperature": 0.2,
    "max_tokens": 1024,
}}

response = requests.post(url, json=payload)
print(response.text)
{TICKS}

## Transformers

{TICKS}python
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

model_name = "Example/Note-4B"
tokenizer = AutoTokenizer.from_pretrained(model_name)
messages = [
    {{"role": "system", "content": ("Keep notes in " "a few words.")}},
    {{"role": "user", "content": ({_ASKED})}},
]

tools = {_TOOLS}

text = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, enable_thinking=True)
{TICKS}

## vLLM

Start a server:

{TICKS}bash
vllm serve Example/Note-4B --enable-auto-tool-choice --tool-call-parser hermes
{TICKS}

## Output format

{TICKS}text
<think>
It is new.
</think>

<tool_call>
{{"name": "ignore_memory", "arguments": {{"reason": "[user]: small talk"}}}}
</tool_call>
{TICKS}
"""
"""A card in the shape of the published one: a request over HTTP, and one by transformers with a shorter system text."""

READ: Final = """You see a task, some notes and a page. Rewrite the notes.  \n
<problem> \n{prompt}
</problem>

<memory>
{memory}
</memory>

<section>
{chunk}
</section>

Updated memory:
"""
ANSWER: Final = """From the notes alone, give the answer in \\\\boxed{{}}.

<problem> \n{prompt}
</problem>

<memory>
{memory}
</memory>

Your answer:
"""
MEMAGENT: Final = '''\
import os

import aiohttp

from utils import extract_solution

TEMPLATE = """READ"""

TEMPLATE_FINAL = """ANSWER"""

NO_MEMORY = "Nothing noted yet"
SIZE = int(os.environ["RECURRENT_CHUNK_SIZE"])
URL = f"http://{os.environ['SERVE_HOST']}:{os.environ['SERVE_PORT']}/v1/chat/completions"


async def ask(session, model, text, temperature, top_p):
    body = dict(model=model, messages=[{"role": "user", "content": text}], temperature=temperature, top_p=top_p,
                max_tokens=int(os.environ["RECURRENT_MAX_NEW"]))
    async with session.post(URL, json=body) as response:
        return (await response.json())["choices"][0]["message"]["content"]


async def async_query_llm(item, model, tokenizer, temperature=0.7, top_p=0.95, stop=None):
    ids = tokenizer.encode(item["context"].strip())
    memory = NO_MEMORY
    async with aiohttp.ClientSession() as session:
        for start in range(0, len(ids), SIZE):
            chunk = tokenizer.decode(ids[start : start + SIZE])
            text = TEMPLATE.format(prompt=item["input"].strip(), chunk=chunk, memory=memory)
            memory, _ = extract_solution(await ask(session, model, text, temperature, top_p))
        text = TEMPLATE_FINAL.format(prompt=item["input"].strip(), memory=memory)
        return await ask(session, model, text, temperature, top_p)
'''.replace("READ", READ).replace("ANSWER", ANSWER)
PLAIN_ENDING: Final = 'From the notes alone, reply "Therefore, the answer is (your answer)".'
MEMAGENT_TABLE: Final = MEMAGENT.replace("From the notes alone, give the answer in \\\\boxed{{}}.", PLAIN_ENDING)
MEMAGENT_DIRECT: Final = '''\
template_0shot = """Read this and reply.

<text>
$DOC$
</text>

$Q$

Form: "Therefore, the answer is (your answer)"."""
'''
MEMAGENT_UTILS: Final = """\
def extract_solution(text):
    return (text.split("</think>")[-1].strip() if "</think>" in text else text), text
"""

JUDGE: Final = """Is anything missing?
Ask one <query>...</query>, never about <confirmed>...</confirmed>.

<question>
{question}
</question>

<memory>
{memory}
</memory>

<query_history>
{decomposed_history}
</query_history>

"""
MERGE: Final = """Merge.

<question>
{question}
</question>

<memory>
{memory}
</memory>

<reference>
<subquestion>
{subquestion}
</subquestion>
<subanswer>
{answer}
</subanswer>
</reference>

Updated memory:
"""
PROMPTS: Final = f'''\
MEMAGENT_READING_TEMPLATE = """{READ}"""
DECOMPOSING_OR_ANSWERING_TEMPLATE = """{JUDGE}"""
ANSWERING_TEMPLATE = """{ANSWER.replace("{prompt}", "{question}")}"""
INTEGRATING_TEMPLATE = """{MERGE}"""
NO_MEMORY = "Nothing noted yet"
NO_REFERENCE_MEMORY = "Nothing to compare"
'''
TOOLS: Final = """\
from recursive.prompts import *


def message(text):
    return [dict(role = "user", content = text)]

def get_reading_messages(question, reference_memory, memory, chunk):
    return message(MEMAGENT_READING_TEMPLATE.format(prompt = question, memory = memory, chunk = chunk))

def get_progress_or_answer_messages(decomposed_stack, question, memory, history):
    if not history:
        history_str = "NOTHING ASKED"
    else:
        history_str = "\\n".join([f"<query>{x['question']}</query> <result>{x['answer']}</result>" for x in history])
    return message(DECOMPOSING_OR_ANSWERING_TEMPLATE.format(
        question = question, memory = memory, decomposed_history = history_str))

def get_answering_messages(question, memory):
    return message(ANSWERING_TEMPLATE.format(question = question, memory = memory))

def get_integrating_messages(question, memory, submemory, subquestion, answer):
    return message(INTEGRATING_TEMPLATE.format(
        question = question, memory = memory, submemory = submemory, subquestion = subquestion, answer = answer))
"""

QUICK_START: Final = """\
def chunk_worker(item, model, tokenizer):
    ids = tokenizer.encode(item["context"])
    item["context_chunks"] = [tokenizer.decode(ids[start : start + 5000]) for start in range(0, len(ids), 5000)]
    return item
"""
WIKI_EVALUATION: Final = """\
def process_data(item):
    if "input" in item:
        item['question'] = item['input'] + " In few words."
    return item
"""
GLOBAL_EVALUATION: Final = """\
def process_data(item):
    item['question'] = item['question'] + "In digits."
    return item
"""
MEMREREAD_API: Final = """\
import re

import aiohttp

from recursive.prompts import NO_MEMORY
from recursive.tools import *


class MemReread_API:
    def __init__(self, tokenizer_model, model_name, base_url, api_key, max_width=2, max_nodes=2):
        self.model_name, self.base_url, self.max_rereads = model_name, base_url, max_nodes - 1

    async def query(self, messages, max_tokens):
        body = dict(model=self.model_name, messages=messages, temperature=0.7, top_p=0.95, max_tokens=max_tokens,
                    chat_template_kwargs={"enable_thinking": False}, thinking={"type": "disabled"})
        async with aiohttp.ClientSession() as session:
            for _ in range(2):
                async with session.post(self.base_url + "/chat/completions", json=body) as response:
                    content = (await response.json())["choices"][0]["message"]["content"]
        return content

    async def read(self, question, chunks):
        memory = NO_MEMORY
        for chunk in chunks:
            memory = await self.query(get_reading_messages(question, "", memory, chunk), 1024)
        return memory

    async def __call__(self, question, context, context_chunks):
        memory, history = await self.read(question, context_chunks), []
        for _ in range(self.max_rereads):
            verdict = await self.query(get_progress_or_answer_messages([], question, memory, history), 8192)
            found = re.search("<query>(.+)</query>", verdict, re.DOTALL)
            asked = found[1].lstrip("{").rstrip("}").strip() if found else ""
            if len(asked) < 6:
                break
            known = await self.read(asked, context_chunks)
            answer = await self.query(get_answering_messages(asked, known), 1024)
            memory = await self.query(get_integrating_messages(question, memory, known, asked, answer), 1024)
            history.append({"question": asked, "answer": answer})
        return await self.query(get_answering_messages(question, memory), 1024)
"""

MEMOS_LOCOMO: Final = '''\
ANSWER_PROMPT_OTHER = "no"
ANSWER_PROMPT_MEMOS = """
   Say it shortly.

   {context}

   Question: {question}

   Answer:
   """
TEMPLATE_MEMOS = """Of {speaker_1}:

    {speaker_1_memories}

    Of {speaker_2}:

    {speaker_2_memories}
"""
'''
MEMOS_GRADER: Final = '''\
async def locomo_grader(llm_client, question, gold_answer, response):
    system_prompt = """
        You grade.
        """
    accuracy_prompt = f"""
    Question: {question}
    Gold answer: {gold_answer}
    Generated answer: {response}
    Reply as {{"label": "CORRECT or WRONG"}}.
    """
    return await llm_client(system_prompt, accuracy_prompt)
'''
MEMOS_PROMPTS: Final = '''\
LME_ANSWER_PROMPT = """
    {context}

    Current Date: {question_date}

    Question: {question}
    """
MEMOS_CONTEXT_TEMPLATE = """
    Of {user_id}:

    {memories}
"""
LME_JUDGE_MODEL_TEMPLATE = """
    Question: {question}
    Gold answer: {golden_answer}
    Generated answer: {response}
    """
'''
MEMOS_LME: Final = """\
def lme_grader(llm_client, question, golden_answer, response):
    system_prompt = \"You grade.\"
    return llm_client(system_prompt)
"""

LIGHT_TRANSFORMERS: Final = """\
from tokenizers import Tokenizer


class AutoTokenizer:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    @classmethod
    def from_pretrained(cls, folder):
        return cls(Tokenizer.from_file(folder + "/tokenizer.json"))

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=False)
"""


def write_card(snapshot: Path, card: str = CARD) -> Path:
    """The snapshot, with a model card."""
    return _write(snapshot, {"README.md": card})


def write_memagent(checkout: Path, module: str = MEMAGENT) -> Path:
    """A checkout like MemAgent's."""
    folder = "taskutils/memory_eval/utils"
    modules = {"recurrent_boxed.py": module, "recurrent.py": MEMAGENT_TABLE, "__init__.py": MEMAGENT_UTILS}
    modules["openai_api.py"] = MEMAGENT_DIRECT
    return _write(checkout, {f"{folder}/{name}": text for name, text in modules.items()})


def write_memreread(checkout: Path, prompts: str = PROMPTS, tools: str = TOOLS, *, loop: str = MEMREREAD_API) -> Path:
    """A checkout like MemReread's."""
    modules = {"recursive/prompts.py": prompts, "recursive/tools.py": tools}
    running = {"quick_start.py": QUICK_START, "exp/interface/mem_reread_api.py": loop}
    running["exp/main/eval_2wikimultihopqa_memreread.py"] = WIKI_EVALUATION
    running["exp/preliminary/eval_global_reasoning_mem_reread.py"] = GLOBAL_EVALUATION
    return _write(checkout, modules | running)


MEMOS_READER: Final = '''\
SIMPLE_STRUCT_MEM_READER_PROMPT = """You list what is worth keeping as JSON:
{
  "memory list": [{"key": <string>, "value": <string>, "tags": ["a"]}],
  "summary": <string>
}

${custom_tags_prompt}

Example:
user: [June 26, 2025]: I moved.

Dialogue:
${conversation}

Output:"""
'''


def write_memos_reader(checkout: Path, module: str = MEMOS_READER) -> Path:
    """A checkout like MemOS's, with the prompt of its reader."""
    return _write(checkout, {"src/memos/templates/mem_reader_prompts.py": module})


def write_memos(checkout: Path, grader: str = MEMOS_GRADER) -> Path:
    """A checkout like MemOS's, with its evaluation scripts."""
    modules = {"locomo/prompts.py": MEMOS_LOCOMO, "locomo/locomo_eval.py": grader}
    modules |= {"utils/prompts.py": MEMOS_PROMPTS, "longmemeval/lme_eval.py": MEMOS_LME}
    return _write(checkout, {f"evaluation/scripts/{name}": text for name, text in modules.items()})


def with_light_tokenizer(checkout: Path) -> Path:
    """The checkout with a module in the place of transformers, whose import takes seconds."""
    places = ("transformers.py", "taskutils/memory_eval/transformers.py")
    return _write(checkout, dict.fromkeys(places, LIGHT_TRANSFORMERS))


def _write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    return folder
