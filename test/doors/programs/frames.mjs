import OpenAI from "openai";

const { converse } = await import(process.env.CONVERSATION);
console.log(JSON.stringify(await converse(OpenAI, process.env.BASE_URL)));
