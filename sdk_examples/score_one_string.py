"""Score one completion and see where the points went. Run: python sdk_examples/score_one_string.py"""

import callwright as cw

task = cw.corpus("toolworld-mini-v1")["evaluation"][16]  # "list restaurants in Lima open at 15"
completion = """<think>Find the restaurants, then keep those that are open.</think>
<tool_call return="one">
{"0": {"FindRestaurants": {"location": "Lima"}}, "1": {"FilterByOpen": {"restaurants": "API_RESPONSE_0", "hour": "15"}}}
</tool_call>"""
reward = cw.reward("tier").score(task, completion, ir="json")

if __name__ == "__main__":
    print(task.query)
    print(reward.explain())
